"""Encodings that rotate queries and keys, so that a logit depends on the offset alone."""

import math
from typing import Annotated, Literal

import torch

from .attention_bias import ChannelDecay
from .component import Base, Bounds, Factor, Positive
from .encodings_absolute import exact_angles, inverse_frequencies
from .position_encoding import PositionEncoding, Tokens

Share = Annotated[float, Bounds(above=0, most=1)]


class RoPE(PositionEncoding):
    """Rotary position embedding (Su et al. 2021, equations 13 to 16): channel pairs turn by position · frequency.

    base: the geometric grid is base^(-2f / rotated channels), in radians per token.
    share: share of the head's channels that rotate (partial rotary, GPT-NeoX); the rest passes untouched.
    p: share of the frequencies that are kept, the highest; the others are 0 (p-RoPE, Barbero et al. 2024, 2410.06205; the
        "proportional" type of other libraries).
    grid: "geometric", or "linear": `top` times n/n, (n-1)/n, ..., 1/n for n pairs; `top` is in radians per token, and the
        grid repeats after 2π n / top tokens.
    Pairs are (c, c + half), as in Llama. Raises `ValueError` where the rotated part is odd or empty.
    """

    paper = "2104.09864"
    rope_type = "default"  # transformers' name, in the class's own body: a subclass is another encoding
    amplitude = 1.0  # multiplies the rotated queries and keys, each

    def __init__(
        self,
        config,
        *,
        base: Base = 10000.0,
        share: Share = 1.0,
        p: Annotated[float, Bounds(least=0, most=1)] = 1.0,
        grid: Literal["geometric", "linear"] = "geometric",
        top: Positive = 1.0,
    ):
        super().__init__(config)
        self.base, self.share, self.p, self.grid, self.top = base, share, p, grid, top
        self.rotated = int(config.head_dim * share)
        if self.rotated < 2 or self.rotated % 2:
            raise ValueError(
                f"RoPE rotates pairs of channels: head_dim {config.head_dim} with share {share} rotates "
                f"{self.rotated} channels; it must be an even number from 2 to head_dim"
            )

    def frequencies(self) -> torch.Tensor:
        """(rotated / 2,) in radians per token, float64."""
        n = self.rotated // 2
        if self.grid == "linear":
            grid = self.top * torch.arange(n, 0, -1, dtype=torch.float64) / n
        else:
            grid = inverse_frequencies(self.rotated, self.base)
        return grid if self.p == 1 else torch.where(torch.arange(n) < int(self.p * n), grid, 0.0)

    def angles(self, tokens: Tokens) -> torch.Tensor:
        """(B, L, rotated / 2) in radians."""
        return exact_angles(tokens.positions_BL, self.frequencies())

    def tables(self, queries: Tokens, keys: Tokens) -> tuple[torch.Tensor, ...]:
        return cos_sin(self.angles(queries), queries.dtype, self.amplitude)

    def query(self, q_BHLK: torch.Tensor, tokens: Tokens, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return rotate(q_BHLK, cos, sin)

    key = query


class LinearRoPE(RoPE):
    """Position interpolation (Chen et al. 2023, equation 4): every frequency divided by `factor`."""

    paper = "2306.15595"
    rope_type = "linear"

    def __init__(self, config, *, base: Base = 10000.0, share: Share = 1.0, factor: Factor = 4.0):
        super().__init__(config, base=base, share=share)
        self.factor = factor

    def frequencies(self) -> torch.Tensor:
        return super().frequencies() / self.factor


class NTKRoPE(LinearRoPE):
    """NTK-aware scaling (Peng et al. 2023, definition 1): base · factor^(r / (r - 2)) for r rotated channels, so that
    the lowest frequency is divided by `factor` and the highest is kept."""

    paper = "2309.00071"

    def frequencies(self) -> torch.Tensor:
        if self.rotated < 4:
            raise ValueError(f"NTK-aware scaling needs at least 4 rotated channels, not {self.rotated}")
        return inverse_frequencies(self.rotated, self.base * self.factor ** (self.rotated / (self.rotated - 2)))


class YaRNRoPE(RoPE):
    """YaRN (Peng et al. 2023, section 3.4): frequencies that turn more than `beta_fast` times within the original
    length (`max_position_embeddings`) are kept, those below `beta_slow` turns are divided by `factor`, a ramp between;
    queries and keys are multiplied by `attention_factor` (None: 0.1 ln(factor) + 1).
    """

    paper = "2309.00071"
    rope_type = "yarn"

    def __init__(
        self,
        config,
        *,
        base: Base = 10000.0,
        share: Share = 1.0,
        factor: Factor = 4.0,
        beta_fast: Positive = 32.0,
        beta_slow: Positive = 1.0,
        attention_factor: Positive | None = None,
    ):
        super().__init__(config, base=base, share=share)
        self.factor, self.beta_fast, self.beta_slow = factor, beta_fast, beta_slow
        self.amplitude = 0.1 * math.log(factor) + 1 if attention_factor is None else attention_factor

    def frequencies(self) -> torch.Tensor:
        def pair_with(turns: float) -> float:
            original = self.config.max_position_embeddings
            return self.rotated * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(self.base))

        low = max(math.floor(pair_with(self.beta_fast)), 0)
        high = min(math.ceil(pair_with(self.beta_slow)), self.rotated - 1)
        pairs = torch.arange(self.rotated // 2, dtype=torch.float64)
        ramp = ((pairs - low) / max(high - low, 1e-3)).clamp(0, 1)
        plain = super().frequencies()
        return plain / self.factor * ramp + plain * (1 - ramp)


class Llama3RoPE(RoPE):
    """Llama 3.1's scaling (Dubey et al. 2024; formulas reconstructed from its release): wavelengths shorter than
    original length / `high_freq_factor` are kept, longer than original length / `low_freq_factor` are stretched by
    `factor`, blended between. The original length is `max_position_embeddings`.
    """

    paper = "2407.21783"
    rope_type = "llama3"

    def __init__(
        self,
        config,
        *,
        base: Base = 10000.0,
        share: Share = 1.0,
        factor: Factor = 4.0,
        low_freq_factor: Positive = 1.0,
        high_freq_factor: Positive = 4.0,
    ):
        super().__init__(config, base=base, share=share)
        if high_freq_factor <= low_freq_factor:
            raise ValueError(f"high_freq_factor {high_freq_factor} must be above low_freq_factor {low_freq_factor}")
        self.factor, self.low, self.high = factor, low_freq_factor, high_freq_factor

    def frequencies(self) -> torch.Tensor:
        plain = super().frequencies()
        turns = self.config.max_position_embeddings * plain / (2 * math.pi)  # within the original length
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return plain * kept + plain / self.factor * (1 - kept)


class LongRoPE(RoPE):
    """LongRoPE (Ding et al. 2024, section 3): each frequency divided by a searched factor of its own, `short_factor`
    up to the original length (`max_position_embeddings`) and `long_factor` beyond; queries and keys are multiplied by
    `attention_factor` (None: √(1 + ln(factor) / ln(original length))). None for the lists: 1 each, and `factor` each.
    """

    paper = "2402.13753"
    rope_type = "longrope"
    depends_on_length = True

    def __init__(
        self,
        config,
        *,
        base: Base = 10000.0,
        share: Share = 1.0,
        factor: Factor = 4.0,
        short_factor: list[Positive] | None = None,
        long_factor: list[Positive] | None = None,
        attention_factor: Positive | None = None,
    ):
        super().__init__(config, base=base, share=share)
        pairs, original = self.rotated // 2, config.max_position_embeddings
        self.short, self.long = short_factor or [1.0] * pairs, long_factor or [factor] * pairs
        for name, factors in (("short_factor", self.short), ("long_factor", self.long)):
            if len(factors) != pairs:
                raise ValueError(f"{name} lists {len(factors)} numbers; {pairs} frequencies rotate")
        formula = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 and original > 1 else 1.0
        self.amplitude = formula if attention_factor is None else attention_factor

    def angles(self, tokens: Tokens) -> torch.Tensor:
        plain = super().frequencies()
        factors = torch.tensor([self.short, self.long], dtype=torch.float64)
        beyond = (tokens.lengths_BL > self.config.max_position_embeddings).long()
        return tokens.positions_BL.double()[..., None] * (plain / factors).to(beyond.device)[beyond]


class DynamicNTKRoPE(LinearRoPE):
    """Dynamic NTK-aware scaling (Peng et al. 2023, appendix B.2): the base grows with the document once it is longer
    than the original length n (`max_position_embeddings`): base · (factor · length / n - factor + 1)^(r / (r - 2)) for
    r rotated channels.
    """

    paper = "2309.00071"
    rope_type = "dynamic"
    depends_on_length = True

    def angles(self, tokens: Tokens) -> torch.Tensor:
        original, rotated = self.config.max_position_embeddings, self.rotated
        if rotated < 4:
            raise ValueError(f"dynamic NTK needs at least 4 rotated channels, not {rotated}")
        length = tokens.lengths_BL.double().clamp(min=original)
        growth = (self.factor * length / original - (self.factor - 1)) ** (rotated / (rotated - 2))
        exponents = torch.arange(0, rotated, 2, dtype=torch.float64, device=length.device) / rotated
        frequencies = (self.base * growth)[..., None] ** -exponents
        return tokens.positions_BL.double()[..., None] * frequencies


class XPos(RoPE):
    """xPos (Sun et al. 2022, equations 8 to 12): RoPE in which pair f of a query · key also decays by
    ζ_f^(distance / scale_base), ζ_f = (f / pairs + gamma) / (1 + gamma).

    The paper lets queries grow and keys shrink around the centre of the sequence. What is left in their product is the
    decay with distance, whatever the centre: `centre` changes nothing, and stays for the configs that name it.
    """

    paper = "2212.10554"
    rope_type = None

    def __init__(
        self,
        config,
        *,
        base: Base = 10000.0,
        gamma: Positive = 0.4,
        scale_base: Positive = 512.0,
        centre: Annotated[int, Bounds(least=-(2**40), most=2**40)] = 0,
    ):
        super().__init__(config, base=base)
        self.gamma, self.scale_base = gamma, scale_base

    def channel_decay(self) -> ChannelDecay:
        """Return the decay of each channel per position; the two channels of a pair decay alike."""
        pairs = self.rotated // 2
        zeta = [(f / pairs + self.gamma) / (1 + self.gamma) for f in range(pairs)]
        return ChannelDecay(2 * tuple(-math.log(z) / self.scale_base for z in zeta))

    def bias(self, queries: Tokens, keys: Tokens, *tables: torch.Tensor) -> ChannelDecay:
        return self.channel_decay()


class RoVE(RoPE):
    """Rotary values (reconstructed): beside queries and keys, values turn by their own position and the average is
    turned back by the query's, so that what is moved depends on the offset too: o_i = Σ a_ij R(j - i) v_j.
    """

    paper = None
    rope_type = None

    def value(self, v_BHLK: torch.Tensor, tokens: Tokens, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return rotate(v_BHLK, cos, sin)

    def output(self, o_BHLK: torch.Tensor, tokens: Tokens, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return rotate(o_BHLK, cos, -sin)


def cos_sin(angles: torch.Tensor, dtype: torch.dtype, amplitude: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, 1, L, F) each, for all heads."""
    waves = (angles.cos(), angles.sin())
    return tuple((wave if amplitude == 1 else amplitude * wave).to(dtype)[:, None] for wave in waves)


def rotate(x_BHLK: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn the pairs (c, c + F) of the first 2F channels; computed in the tables' precision, rounded once."""
    half = cos.shape[-1]
    first, second, rest = x_BHLK.split([half, half, x_BHLK.shape[-1] - 2 * half], -1)
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(x_BHLK.dtype)
    return torch.cat([turned, rest], -1) if rest.shape[-1] else turned
