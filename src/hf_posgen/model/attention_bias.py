"""The kinds of bias an encoding may add to the logits. Each knows how it is written out for a chunk of rows; the kernels
in `attention_kernels` know what is cheaper for each kind. Shape suffixes: see `position_encoding`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Rows:
    """Some rows of the attention matrix: c queries (suffix c) against M keys.

    queries, keys: their `Tokens`. query_BHcK, key_BHMK: as encoded; `scale` multiplies their products.
    logits_BHcM: scaled products, without bias, unmasked; only for a bias that says `needs_logits`.
    visible: boolean, broadcastable to (B, 1, c, M): which keys each query may see.
    """

    queries: Any
    keys: Any
    query_BHcK: torch.Tensor
    key_BHMK: torch.Tensor
    scale: float
    visible: torch.Tensor
    logits_BHcM: torch.Tensor | None = None

    def distances(self) -> torch.Tensor:
        """Return (B, c, M): how far back each key stands, in positions; 0 for what lies ahead."""
        ahead = self.queries.positions_BL[:, :, None] - self.keys.positions_BL[:, None, :]
        return ahead.clamp(min=0)


@dataclass(frozen=True)
class Columns:
    """A bias that is a sum over C of query_BHLC · key_BHMC (B and H may be 1): it rides along as extra columns of q and k.

    Both in float32 or better; the kernel splits them so that half precision loses nothing.
    """

    query_BHLC: torch.Tensor
    key_BHMC: torch.Tensor
    kind = "columns"
    needs_logits = False

    def rows(self, start: int, stop: int) -> "Columns":
        return Columns(self.query_BHLC[:, :, start:stop], self.key_BHMC)

    def dense(self, rows: Rows) -> torch.Tensor:
        """Return (B, H, c, M), for the rows this was cut to."""
        return self.query_BHLC @ self.key_BHMC.transpose(-1, -2)

    def __add__(self, other: "Columns") -> "Columns":
        return Columns(concatenate([self.query_BHLC, other.query_BHLC]), concatenate([self.key_BHMC, other.key_BHMC]))


@dataclass(frozen=True)
class ByDistance:
    """A bias that is one number per head and distance. `at` maps integer distances of any shape to (H, *shape)."""

    at: Callable[[torch.Tensor], torch.Tensor]
    kind = "by distance"
    needs_logits = False

    def rows(self, start: int, stop: int) -> "ByDistance":
        return self

    def dense(self, rows: Rows) -> torch.Tensor:
        return self.at(rows.distances()).transpose(0, 1)


@dataclass(frozen=True)
class Pairwise:
    """A bias that needs both positions, the query itself, or the row's logits. `of` maps `Rows` to (B, H, c, M)."""

    of: Callable[[Rows], torch.Tensor]
    needs_logits: bool = False
    kind = "pairwise"

    def rows(self, start: int, stop: int) -> "Pairwise":
        return self

    def dense(self, rows: Rows) -> torch.Tensor:
        return self.of(rows)


@dataclass(frozen=True)
class ChannelDecay:
    """Not a sum but a product: channel k of every query · key shrinks by exp(-rates[k] · distance), rates ≥ 0 per position.

    The factor splits into one of the query and one of the key around any common centre. Both are finite only near it, so
    the kernels take together no more queries than `rows_together` says, and centre them on the farthest of them: a key's
    factor is then at most 1, and one that vanishes stands too far back to matter.
    """

    rates: tuple[float, ...]
    kind = "channel decay"
    needs_logits = False

    def rows(self, start: int, stop: int) -> "ChannelDecay":
        return self

    def dense(self, rows: Rows) -> torch.Tensor:
        """Return what the decay takes off the scaled products, (B, H, c, M), pair by pair: right at any positions."""
        dtype, distance_B1cM = rows.queries.dtype, rows.distances()[:, None].to(rows.queries.dtype)
        q, k = rows.query_BHcK.to(dtype), rows.key_BHMK.to(dtype)
        lost = torch.zeros((), dtype=dtype, device=q.device)
        for channel, rate in enumerate(self.rates):
            product = q[..., channel, None] * k[..., None, :, channel]
            lost = lost + product * torch.expm1(-rate * distance_B1cM)
        return lost * rows.scale

    def rows_together(self, queries) -> int | None:
        """Return how many neighbouring queries' factors stay finite around a common centre; None: not known in a compiled
        graph."""
        length, fastest = queries.positions_BL.shape[1], max(self.rates)
        if length == 1 or fastest == 0:
            return length
        reach = LARGEST_EXPONENT[queries.dtype] / fastest
        if queries.sequential:
            return max(1, min(length, int(reach)))
        return None if torch.compiler.is_compiling() else rows_within(queries.positions_BL, reach)

    def factors(self, queries, keys) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the factors (B, 1, L, K) of the queries and (B, 1, M, K) of the keys around the farthest query."""
        rate_K = torch.tensor(self.rates, dtype=queries.dtype, device=queries.positions_BL.device)
        centre_B1 = queries.positions_BL.amax(1, keepdim=True)
        ahead_BL, behind_BM = centre_B1 - queries.positions_BL, (centre_B1 - keys.positions_BL).clamp(min=0)
        of_q, of_k = (rate_K * ahead_BL[..., None]).exp(), (-rate_K * behind_BM[..., None]).exp()
        return of_q[:, None], of_k[:, None]


LARGEST_EXPONENT = {torch.float32: 60.0, torch.float64: 600.0}  # e to it leaves room for what is multiplied


def rows_within(positions_BL: torch.Tensor, reach: float) -> int:
    """Return into how long spans the tokens can be cut so that none holds two that stand more than `reach` apart."""
    rows = positions_BL.shape[1]
    while rows > 1:
        spans = positions_BL.split(rows, dim=1)
        if all(int((span.amax(1) - span.amin(1)).max()) <= reach for span in spans):
            break
        rows = (rows + 1) // 2
    return rows


Bias = Columns | ByDistance | Pairwise | ChannelDecay


def concatenate(columns: list[torch.Tensor], width: int | None = None) -> torch.Tensor:
    """Return the columns side by side, broadcast against each other, and zeros up to `width`; copied once."""
    shape = torch.broadcast_shapes(*(some.shape[:-1] for some in columns))
    columns = [some.expand(*shape, -1) for some in columns]
    missing = 0 if width is None else width - sum(some.shape[-1] for some in columns)
    if missing:
        columns.append(columns[0].new_zeros(1).expand(*shape, missing))
    return torch.cat(columns, -1) if len(columns) > 1 else columns[0]


def relative(slopes: torch.Tensor, queries, keys) -> Columns:
    """Return the bias -slope · (query position - key position) as columns; slopes (H,), or per query (B or 1, H, L or 1).

    Positions are counted from the middle of the queries, in integers: the bias of a shifted sequence is then bit-equal.
    """
    middle = (queries.positions_BL[:, :1] + queries.positions_BL[:, -1:]) // 2
    slopes = slopes.to(queries.dtype)
    slopes = slopes[None, :, None] if slopes.ndim == 1 else slopes
    query = slopes * (queries.positions_BL - middle).to(queries.dtype)[:, None, :]
    key = (keys.positions_BL - middle).to(queries.dtype)[:, None, :]
    slopes = slopes.expand_as(query)
    return Columns(torch.stack([-query, slopes], -1), torch.stack([torch.ones_like(key), key], -1))


def between_sums(queries, keys) -> Columns:
    """Return the bias sum(query) - sum(key): what the running sums gained between key and query; one sum per head.

    Sums are counted from the middle query's, so that those which still matter are small.
    """
    middle = queries.sums_BLS[:, queries.sums_BLS.shape[1] // 2, None].detach()
    query, key = ((tokens.sums_BLS - middle).transpose(1, 2) for tokens in (queries, keys))
    return Columns(
        torch.stack([query, torch.ones_like(query)], -1),
        torch.stack([torch.ones_like(key), -key], -1),
    )
