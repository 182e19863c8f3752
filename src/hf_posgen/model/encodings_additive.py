"""Encodings that add to the logits a bias made of positions alone."""

import math
from typing import Annotated, Literal

import torch
from torch import nn
from transformers import initialization as init

from .attention_bias import ByDistance, Columns, Pairwise, Rows, relative
from .component import Base, Bounds, Positive, Size, Spread
from .encodings_absolute import exact_angles, inverse_frequencies
from .position_encoding import Coefficients, PositionEncoding, Tokens


class ALiBi(PositionEncoding):
    """Attention with linear biases (Press et al. 2021, section 3): each head adds -slope · distance, after the scaling
    by 1/√K.

    slopes: "paper" (2^(-8h/H) for a power of two; otherwise the next smaller power's, then every other one of the next
    larger's), "geometric" (2^(-8h/H) for any H), or "learned" (positive, starting at the paper's).
    """

    paper = "2108.12409"

    def __init__(self, config, *, slopes: Literal["paper", "geometric", "learned"] = "paper"):
        super().__init__(config)
        self.slopes = slopes
        if slopes == "learned":
            self.log_slopes = nn.Parameter(torch.empty(config.num_attention_heads))

    def reset_parameters(self) -> None:
        if self.slopes == "learned":
            slopes = paper_slopes(self.config.num_attention_heads)
            init.copy_(self.log_slopes, torch.tensor(slopes, dtype=torch.float64).log().to(self.log_slopes.dtype))

    def slopes_H(self, tokens: Tokens) -> torch.Tensor:
        if self.slopes == "learned":
            return self.log_slopes.to(tokens.dtype).exp()
        heads = self.config.num_attention_heads
        slopes = paper_slopes(heads) if self.slopes == "paper" else geometric_slopes(heads)
        return torch.tensor(slopes, dtype=tokens.dtype, device=tokens.positions_BL.device)

    def tables(self, queries: Tokens, keys: Tokens) -> tuple[torch.Tensor, ...]:
        columns = relative(self.slopes_H(queries), queries, keys)
        return columns.query_BHLC, columns.key_BHMC

    def bias(self, queries: Tokens, keys: Tokens, query_BHLC: torch.Tensor, key_BHMC: torch.Tensor):
        return Columns(query_BHLC, key_BHMC)


def geometric_slopes(heads: int) -> list[float]:
    return [2.0 ** (-8.0 * (head + 1) / heads) for head in range(heads)]


def paper_slopes(heads: int) -> list[float]:
    power = 2 ** int(math.log2(heads))
    return geometric_slopes(power) + geometric_slopes(2 * power)[::2][: heads - power]


class T5(PositionEncoding):
    """T5's relative bias (Raffel et al. 2019, section 2.1): a trained number per head and bucket of distance, shared
    by all layers; half of the buckets hold one distance each, the rest grow logarithmically up to `max_distance`.
    """

    paper = "1910.10683"

    def __init__(
        self,
        config,
        *,
        buckets: Annotated[int, Bounds(least=2, most=2**20)] = 32,
        max_distance: Size = 128,
        std: Spread = 0.02,
    ):
        super().__init__(config)
        if max_distance <= buckets // 2:
            raise ValueError(f"T5 needs max_distance > buckets / 2, not {max_distance} and {buckets}")
        self.buckets, self.max_distance, self.std = buckets, max_distance, std
        self.weight = nn.Parameter(torch.empty(config.num_attention_heads, buckets))

    def reset_parameters(self) -> None:
        init.normal_(self.weight, std=self.std)

    def bucket(self, distance: torch.Tensor) -> torch.Tensor:
        exact = self.buckets // 2
        growth = (distance.clamp(min=1).double() / exact).log() / math.log(self.max_distance / exact)
        # A hair above, so that a distance exactly on a boundary is not rounded below it.
        coarse = exact + (growth * (self.buckets - exact) + 1e-9).long()
        return torch.where(distance < exact, distance, coarse.clamp(max=self.buckets - 1))

    def bias(self, queries: Tokens, keys: Tokens):
        weight = self.weight.to(queries.dtype)
        return ByDistance(lambda distance: weight[:, self.bucket(distance)])


class FIRE(PositionEncoding):
    """Functional interpolation (Li et al. 2023, equations 7 to 9): an MLP of ψ(distance) / ψ(max(L, query position)),
    with ψ(x) = log(1 + |c| x), gives each head's bias. c and the threshold L (in tokens) are trained; `width` is the MLP's.
    """

    paper = "2310.04418"
    shared = False

    def __init__(self, config, *, width: Size = 32, c: Positive = 0.1, threshold: Positive = 512.0):
        super().__init__(config)
        self.initial_c, self.initial_threshold = c, threshold
        self.c = nn.Parameter(torch.empty(()))
        self.threshold = nn.Parameter(torch.empty(()))
        self.hidden = Coefficients(1, width)
        self.out = Coefficients(width, config.num_attention_heads)

    def reset_parameters(self) -> None:
        init.constant_(self.c, self.initial_c)
        init.constant_(self.threshold, self.initial_threshold)

    def argument(self, distance: torch.Tensor, position: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """The progress of a distance, in 0..1; the query's position broadcasts against it."""
        c, threshold = self.c.to(dtype).abs(), self.threshold.to(dtype).abs()
        reach = torch.maximum(position.to(dtype), threshold)
        return torch.log1p(c * distance.to(dtype)) / torch.log1p(c * reach)

    def bias(self, queries: Tokens, keys: Tokens):
        return Pairwise(self.of)

    def pieces(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The MLP as what it is, a piecewise linear function of one number: where it bends (W,), and each head's slope and
        intercept on the W + 1 pieces (H, W + 1)."""
        (hidden_W1, bias_W), (out_HW, bias_H) = self.hidden(), self.out()
        w, b, out = (p.to(dtype) for p in (hidden_W1[:, 0], bias_W, out_HW))
        with torch.no_grad():
            bends = torch.where(w == 0, 0.0, -b / w).sort().values
            within = torch.cat([bends[:1] - 1, (bends[1:] + bends[:-1]) / 2, bends[-1:] + 1])
        on_PW = w * within[:, None] + b > 0
        return bends, out @ (on_PW * w).T, out @ (on_PW * b).T + bias_H.to(dtype)[:, None]

    def of(self, rows: Rows) -> torch.Tensor:
        dtype = rows.queries.dtype
        x_BcM = self.argument(rows.distances(), rows.queries.positions_BL[:, :, None], dtype)
        bends, slope_HP, intercept_HP = self.pieces(dtype)
        piece = torch.bucketize(x_BcM.detach(), bends).flatten().expand(len(slope_HP), -1)
        slope, intercept = (t.gather(1, piece).unflatten(1, x_BcM.shape) for t in (slope_HP, intercept_HP))
        return torch.addcmul(intercept, slope, x_BcM).transpose(0, 1)


class Clipped(PositionEncoding):
    """A free trained number per head and distance, the last one for all that is farther (clipped relative bias; Raffel
    et al. 2019 without buckets). `distances` is how many are told apart, in tokens."""

    paper = "1910.10683"

    def __init__(self, config, *, distances: Size = 16, std: Spread = 0.02):
        super().__init__(config)
        self.distances, self.std = distances, std
        self.weight = nn.Parameter(torch.empty(config.num_attention_heads, distances))

    def reset_parameters(self) -> None:
        init.normal_(self.weight, std=self.std)

    def bias(self, queries: Tokens, keys: Tokens):
        weight = self.weight.to(queries.dtype)
        return ByDistance(lambda distance: weight[:, distance.clamp(max=self.distances - 1)])


class KERPLE(PositionEncoding):
    """Kernelized relative bias (Chi et al. 2022, equations 4 and 5): form "log": -r1 · log(1 + r2 · distance); form
    "power": -r1 · distance^r2. r1 > 0 and r2 (log: > 0; power: in (0, 2)) are trained per head, positive by
    construction, and start at the values given.
    """

    paper = "2205.09921"
    shared = False

    def __init__(self, config, *, form: Literal["log", "power"] = "log", r1: Positive = 1.0, r2: Positive = 1.0):
        super().__init__(config)
        if form == "power" and r2 >= 2:
            raise ValueError(f"kerple's r2 is {r2}; it must be below 2 for the power form")
        self.form, self.start = form, (r1, r2)
        self.raw_r1 = nn.Parameter(torch.empty(config.num_attention_heads))
        self.raw_r2 = nn.Parameter(torch.empty(config.num_attention_heads))

    def reset_parameters(self) -> None:
        r1, r2 = self.start
        init.constant_(self.raw_r1, math.log(r1))
        init.constant_(self.raw_r2, math.log(r2) if self.form == "log" else math.log(r2 / (2 - r2)))

    def bias(self, queries: Tokens, keys: Tokens):
        r1, raw = self.raw_r1.to(queries.dtype).exp(), self.raw_r2.to(queries.dtype)
        r2 = raw.exp() if self.form == "log" else 2 * raw.sigmoid()

        def at(distance: torch.Tensor) -> torch.Tensor:
            a, b = (r.reshape(-1, *[1] * distance.ndim) for r in (r1, r2))
            d = distance.to(queries.dtype)
            if self.form == "log":
                return -a * torch.log1p(b * d)
            return -a * torch.where(d > 0, d.clamp(min=1) ** b, 0.0)

        return ByDistance(at)


class Sandwich(PositionEncoding):
    """Sandwich (Chi et al. 2023, equation 5): Σ_f cos(distance · 10000^(-2f / size)), f = 0 .. size/2 - 1, the part of the
    sinusoidal encoding's inner product that depends on positions alone, with the logits' scaling 1/√K (reconstructed).
    `size` is the inner dimension.
    """

    paper = "2212.10356"

    def __init__(self, config, *, size: Size = 128, base: Base = 10000.0):
        super().__init__(config)
        if size % 2:
            raise ValueError(f"Sandwich's size is {size}; it must be even")
        self.size, self.base = size, base

    def bias(self, queries: Tokens, keys: Tokens):
        frequencies = inverse_frequencies(self.size, self.base)

        def at(distance: torch.Tensor) -> torch.Tensor:
            angles = exact_angles(distance.reshape(1, -1), frequencies)[0]
            total = angles.cos().sum(-1).reshape(distance.shape) * self.config.head_dim**-0.5
            return total.to(queries.dtype).expand(self.config.num_attention_heads, *distance.shape)

        return ByDistance(at)
