"""Encodings that rotate queries and keys, so that a logit depends on the offset alone."""

import torch

from .encodings_absolute import exact_angles, inverse_frequencies
from .position_encoding import PositionEncoding, Tokens


class RoPE(PositionEncoding):
    """Rotary position embedding (Su et al. 2021, equations 13 to 16): channel pairs turn by position · frequency.

    base: the geometric grid is base^(-2f / rotated channels), in radians per token.
    share: share of the head's channels that rotate (partial rotary, GPT-NeoX); the rest passes untouched.
    grid: "geometric", or "linear": frequencies n/n, (n-1)/n, ..., 1/n for n pairs.
    Pairs are (c, c + half), as in Llama. Raises `ValueError` where the rotated part is odd or empty.
    """

    paper = "2104.09864"

    def __init__(self, config, *, base: float = 10000.0, share: float = 1.0, grid: str = "geometric"):
        super().__init__(config)
        self.base, self.share, self.grid = base, share, grid
        self.rotated = int(config.head_dim * share)
        if self.rotated < 2 or self.rotated % 2 or share > 1:
            raise ValueError(
                f"RoPE rotates pairs of channels: head_dim {config.head_dim} with share {share} rotates "
                f"{self.rotated} channels; it must be an even number from 2 to head_dim"
            )
        if grid not in ("geometric", "linear"):
            raise ValueError(f"grid is {grid!r}; allowed: geometric, linear")

    def frequencies(self) -> torch.Tensor:
        """(rotated / 2,) in radians per token, float64."""
        if self.grid == "linear":
            n = self.rotated // 2
            return torch.arange(n, 0, -1, dtype=torch.float64) / n
        return inverse_frequencies(self.rotated, self.base)

    def angles(self, tokens: Tokens) -> torch.Tensor:
        """(B, L, rotated / 2) in radians."""
        return exact_angles(tokens.positions_BL, self.frequencies())

    def tables(self, queries: Tokens, keys: Tokens) -> tuple[torch.Tensor, ...]:
        return cos_sin(self.angles(queries), queries.dtype)

    def query(self, q_BHLK: torch.Tensor, tokens: Tokens, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return rotate(q_BHLK, cos, sin)

    key = query


class DynamicNTKRoPE(RoPE):
    """Dynamic NTK-aware scaling (Peng et al. 2023, appendix B.2): the base grows with the document once it is longer than
    the original length n (`max_position_embeddings`): base · (factor · length / n - factor + 1)^(r / (r - 2)) for r
    rotated channels.
    """

    paper = "2309.00071"
    depends_on_length = True

    def __init__(self, config, *, base: float = 10000.0, share: float = 1.0, factor: float = 4.0):
        super().__init__(config, base=base, share=share)
        self.factor = factor
        if self.rotated < 4:
            raise ValueError(f"dynamic NTK needs at least 4 rotated channels, not {self.rotated}")

    def angles(self, tokens: Tokens) -> torch.Tensor:
        original, rotated = self.config.max_position_embeddings, self.rotated
        length = tokens.lengths_BL.double().clamp(min=original)
        growth = (self.factor * length / original - (self.factor - 1)) ** (rotated / (rotated - 2))
        exponents = torch.arange(0, rotated, 2, dtype=torch.float64, device=length.device) / rotated
        frequencies = (self.base * growth)[..., None] ** -exponents
        return tokens.positions_BL.double()[..., None] * frequencies


def cos_sin(angles: torch.Tensor, dtype: torch.dtype, amplitude: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, 1, L, F) each, for all heads."""
    return (amplitude * angles.cos()).to(dtype)[:, None], (amplitude * angles.sin()).to(dtype)[:, None]


def rotate(x_BHLK: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn the pairs (c, c + F) of the first 2F channels; computed in the tables' precision, rounded once."""
    half = cos.shape[-1]
    first, second, rest = x_BHLK.split([half, half, x_BHLK.shape[-1] - 2 * half], -1)
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(x_BHLK.dtype)
    return torch.cat([turned, rest], -1) if rest.shape[-1] else turned
