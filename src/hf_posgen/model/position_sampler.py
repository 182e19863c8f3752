"""Which positions the tokens of a training sequence are said to have. In evaluation they are counted from 0.

A sampler maps `position_ids` (each token's index in its document) to positions of the same shape, strictly increasing
within a document, with torch's generator. Any encoding takes any sampler.
"""

from typing import Annotated

import torch

from .component import Bounds, build


class Sequential:
    """0, 1, 2, ...: the token's index."""

    def __init__(self, config):
        self.config = config

    def __call__(self, index_BL: torch.Tensor) -> torch.Tensor:
        return index_BL


class Shifted(Sequential):
    """A random start: index + s, s uniform in 0..`maximum` for each row (random shift augmentation)."""

    def __init__(self, config, *, maximum: Annotated[int, Bounds(least=0, most=2**40)] = 32):
        super().__init__(config)
        self.maximum = maximum

    def __call__(self, index_BL: torch.Tensor) -> torch.Tensor:
        shift = torch.randint(self.maximum + 1, (index_BL.shape[0], 1), device=index_BL.device)
        return index_BL + shift


class Randomized(Sequential):
    """A sorted draw without replacement from 0..`maximum` - 1, one for each row (Ruoss et al. 2023, 2305.16843,
    section 3).

    A packed row draws once, and each document takes the positions its indices name. Raises `ValueError` for a sequence
    longer than `maximum`.
    """

    def __init__(self, config, *, maximum: Annotated[int, Bounds(least=1, most=2**24)] = 2048):
        super().__init__(config)
        self.maximum = maximum

    def __call__(self, index_BL: torch.Tensor) -> torch.Tensor:
        rows, length = index_BL.shape
        if length > self.maximum:
            raise ValueError(f"a sequence of {length} tokens can't draw from {self.maximum} positions: raise maximum")
        noise = torch.rand(rows, self.maximum, device=index_BL.device)
        return noise.topk(length, dim=-1).indices.sort(-1).values.gather(-1, index_BL)


class Skipwise(Sequential):
    """Positional skip-wise training (Zhu et al. 2023, 2309.10400, section 3): the sequence is cut at a random place
    and what follows is moved on by a random gap, so that the last position is uniform up to `maximum` - 1.
    """

    def __init__(self, config, *, maximum: Annotated[int, Bounds(least=1, most=2**24)] = 2048):
        super().__init__(config)
        self.maximum = maximum

    def __call__(self, index_BL: torch.Tensor) -> torch.Tensor:
        rows, length = index_BL.shape
        if length > self.maximum:
            raise ValueError(f"a sequence of {length} tokens does not fit {self.maximum} positions: raise maximum")
        cut = torch.randint(1, max(2, length), (rows, 1), device=index_BL.device)
        gap = torch.randint(self.maximum - length + 1, (rows, 1), device=index_BL.device)
        return index_BL + torch.where(index_BL >= cut, gap, 0)


SAMPLERS = {"sequential": Sequential, "shifted": Shifted, "randomized": Randomized, "skipwise": Skipwise}


def build_sampler(spec, config):
    return build(spec, SAMPLERS, "position_sampler", config)
