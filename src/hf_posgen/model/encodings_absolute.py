"""Encodings that act on the token embeddings, and the absence of any."""

import torch
from torch import nn
from transformers import initialization as init

from .component import Base, Positive, Spread
from .position_encoding import PositionEncoding, Tokens


class NoPE(PositionEncoding):
    """No positional encoding: order reaches the model through the causal mask alone (Haviv et al. 2022; Kazemnejad et
    al. 2023)."""

    paper = "2305.19466"


class Learned(PositionEncoding):
    """One trained vector per absolute position, added to the token embeddings (Gehring et al. 2017; Radford et al.
    2018).

    The table has `max_position_embeddings` rows, drawn with standard deviation `std`; past its end the config's
    `out_of_range` decides: "error" raises `ValueError` before the look-up.
    """

    paper = "1705.03122"

    def __init__(self, config, *, std: Spread = 0.02):
        super().__init__(config)
        self.std = std
        self.weight = nn.Parameter(torch.empty(config.max_position_embeddings, config.hidden_size))

    def reset_parameters(self) -> None:
        init.normal_(self.weight, std=self.std)

    def embed(self, x_BLD: torch.Tensor, tokens: Tokens) -> torch.Tensor:
        return x_BLD + self.weight[self._row(tokens.positions_BL)]

    def _row(self, positions_BL: torch.Tensor) -> torch.Tensor:
        size, policy = self.weight.shape[0], self.config.out_of_range
        if policy == "wrap":
            return positions_BL % size
        if policy == "error" and not torch.compiler.is_compiling() and int(positions_BL.max()) >= size:
            raise ValueError(
                f"position {int(positions_BL.max())} is past the learned table of {size} rows "
                "(max_position_embeddings); give it more rows, or set out_of_range to 'clamp' or 'wrap'"
            )
        return positions_BL.clamp(max=size - 1)


class Sinusoidal(PositionEncoding):
    """Fixed sines and cosines of the absolute position, added to the token embeddings (Vaswani et al. 2017, section
    3.5).

    Channels 2f and 2f + 1 hold the sine and cosine of position · base^(-2f / D), times `scale`.
    """

    paper = "1706.03762"

    def __init__(self, config, *, base: Base = 10000.0, scale: Positive = 1.0):
        super().__init__(config)
        if config.hidden_size % 2:
            raise ValueError(f"sinusoidal needs an even hidden_size, not {config.hidden_size}")
        self.base, self.scale = base, scale

    def embed(self, x_BLD: torch.Tensor, tokens: Tokens) -> torch.Tensor:
        size = self.config.hidden_size
        angles_BLF = exact_angles(tokens.positions_BL, inverse_frequencies(size, self.base))
        waves = torch.stack([angles_BLF.sin(), angles_BLF.cos()], -1).flatten(-2)
        return x_BLD + (self.scale * waves).to(x_BLD)


def inverse_frequencies(size: int, base: float) -> torch.Tensor:
    """(size / 2,): base^(-2f / size) in radians per token, float64."""
    return base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)


def exact_angles(positions_BL: torch.Tensor, frequencies_F: torch.Tensor) -> torch.Tensor:
    """(B, L, F): position · frequency in float64, so that the phase is exact to 1e-9 at a million tokens.

    On a device without float64 (Apple's) the product is taken on the CPU and brought back reduced to one turn.
    """
    device = positions_BL.device
    if device.type == "mps":
        angles = positions_BL.cpu().double()[..., None] * frequencies_F.cpu()
        return angles.remainder(2 * torch.pi).float().to(device)
    return positions_BL.double()[..., None] * frequencies_F.to(device)
