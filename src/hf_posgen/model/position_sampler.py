"""Which positions the tokens of a training sequence are said to have. In evaluation they are counted from 0.

A sampler maps `position_ids` (each token's index in its document) to positions of the same shape, strictly increasing
within a document, with torch's generator. Any encoding takes any sampler.
"""

import torch

from .component import build


class Sequential:
    """0, 1, 2, ...: the token's index."""

    def __init__(self, config):
        self.config = config

    def __call__(self, index_BL: torch.Tensor) -> torch.Tensor:
        return index_BL


class Shifted(Sequential):
    """A random start: index + s, s uniform in 0..`maximum` for each row (random shift augmentation)."""

    def __init__(self, config, *, maximum: int = 32):
        super().__init__(config)
        self.maximum = maximum

    def __call__(self, index_BL: torch.Tensor) -> torch.Tensor:
        shift = torch.randint(self.maximum + 1, (index_BL.shape[0], 1), device=index_BL.device)
        return index_BL + shift


SAMPLERS = {"sequential": Sequential, "shifted": Shifted}


def build_sampler(spec, config):
    return build(spec, SAMPLERS, "position_sampler", config)
