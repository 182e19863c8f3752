"""Windows of study 2's stream, drawn by the hundred without a loop over sequences.

A stream is a chain of cycles: R blocks, a mark, R blocks, the mark again, a paste. Where everything stands follows from
the drawn lengths alone; the values are then filled in cycle by cycle, because a source may be an earlier paste. For this
the data tokens of a stream are numbered in order (their *rank*): there a source and its paste are plain slices.

Shape suffixes: N streams, K cycles, B blocks, M copied tokens, T places of the window.
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from .base import IGNORE
from .cells import Cell


@dataclass
class Windows:
    """tokens, labels (N, T); known (N, T): whether a scored token's source stands in the window."""

    tokens: np.ndarray
    labels: np.ndarray
    known: np.ndarray


@dataclass
class Blocks:
    """R blocks side by side: where each begins, whether it is there, and how many tokens they fill."""

    starts: np.ndarray  # (N, K, B)
    there: np.ndarray  # (N, K, B)
    length: np.ndarray  # (N, K)

    @property
    def data(self) -> np.ndarray:
        """(N, K): tokens that are no control token."""
        return self.length - self.there.sum(-1)


def draw_windows(task, rng: np.random.Generator, count: int, cell: Cell) -> Windows:
    """`count` windows of cell.length tokens, each from a stream of its own, cut at a random place of it.

    The window begins uniformly in the second or third cycle; the first one stands before every window.
    """
    gap, fill, kind = _plan(task, rng, count, cell)
    raw = task.source == "raw"
    values, first, pasted, order = _fill(task, rng, gap, fill, kind)
    unit = gap.length + fill.length + 2 + pasted
    begin = task.copied + np.cumsum(unit, 1) - unit
    opened = begin + gap.length
    closed = opened + 1 + fill.length
    start = begin[:, 1] + (rng.random(count) * unit[:, 1:3].sum(1)).astype(np.int64)

    T, rows = cell.length, np.arange(count)[:, None]
    if raw:
        rank = start[:, None] + np.arange(T)
        tokens, origin = values[rows, rank], start
    else:
        controls, before = _controls(task, start, T, begin, opened, closed, gap, fill, kind)
        rank = (start - before)[:, None] + np.cumsum(controls == 0, 1) - 1
        tokens, origin = np.where(controls, controls, np.take_along_axis(values, rank, 1)), start - before
    tokens = tokens.astype(np.int64)
    scored, known = _scored(task, T, closed + 1 - start[:, None], pasted, first - origin[:, None, None], order)
    return Windows(tokens, np.where(scored, tokens, IGNORE), known)


def _plan(task, rng, count: int, cell: Cell) -> tuple[Blocks, Blocks, np.ndarray]:
    """Gaps, fillers and kinds (N, K; 0 is C, 1 is S) of enough cycles to fill every window."""
    kinds = task.kinds if task.asked == "all" or cell.distance is None else task.asked
    shortest_paste = {"C": task.copied, "S": int(task.even_source == "ensured")}
    trained = {k: np.array(task.trained_distances(k)) for k in "CS"}
    block = 1 + task.block_trials * task.block_probability
    typical = block * (task.gap_blocks + 1) / 2 + 2 + shortest_paste[kinds[-1]]
    typical += task.between(cell.distance if cell.distance is not None else int(trained[kinds[-1]].mean()))
    parts, filled = [], np.zeros(count)
    while not parts or filled.min() < cell.length:
        cycles = 2 + int(max(1, cell.length - filled.min()) / typical * 1.2) + 3 * (not parts)
        shape = (count, cycles)
        kind = (
            rng.integers(2, size=shape, dtype=np.int8) if kinds == "CS" else np.full(shape, "CS".index(kinds), np.int8)
        )
        distance = np.full(shape, cell.distance if cell.distance is not None else 0)
        for code, k in enumerate("CS" if cell.distance is None else ""):
            if k in kinds:
                drawn = trained[k][rng.integers(len(trained[k]), size=shape)]
                distance = np.where(kind == code, drawn, distance)
        gap, fill = _gaps(task, rng, shape), _fillers(task, rng, task.between(distance))
        least = gap.length + fill.length + 2 + np.array([shortest_paste[k] for k in "CS"])[kind]
        filled += least[:, 0 if parts else 3 :].sum(1)
        parts.append((gap, fill, kind))
    join = lambda blocks: Blocks(*(_joined([getattr(b, f) for b in blocks]) for f in ("starts", "there", "length")))  # noqa: E731
    gaps, fills, kinds_NK = zip(*parts, strict=True)
    return join(gaps), join(fills), np.concatenate(kinds_NK, 1)


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    """Joined along the cycles; block axes of unequal width are padded with nothing."""
    if len(arrays) == 1:
        return arrays[0]
    if arrays[0].ndim == 3:
        width = max(a.shape[2] for a in arrays)
        arrays = [np.pad(a, ((0, 0), (0, 0), (0, width - a.shape[2]))) for a in arrays]
    return np.concatenate(arrays, 1)


@cache
def _block_cdf(trials: int, probability: float) -> np.ndarray:
    from scipy.stats import binom

    return binom.cdf(np.arange(trials), trials, probability).astype(np.float32)


def _block_lengths(task, rng, shape) -> np.ndarray:
    """1 + ℓ, ℓ ~ Binomial: four times faster than numpy's own."""
    cdf = _block_cdf(task.block_trials, task.block_probability)
    return 1 + np.searchsorted(cdf, rng.random(shape, dtype=np.float32), side="right")


def _gaps(task, rng, shape) -> Blocks:
    """1 to gap_blocks R blocks; "fresh" adds more until they hold enough data."""
    lengths = _block_lengths(task, rng, (*shape, task.gap_blocks))
    if "S" in task.kinds and task.even_source == "ensured":
        lengths = np.maximum(lengths, 2)  # the token before a mark is then never a pasted one, and may be changed
    ends = np.cumsum(lengths, -1)
    there = np.arange(task.gap_blocks) <= rng.integers(task.gap_blocks, size=(*shape, 1), dtype=np.int32)
    if task.source == "fresh":
        while True:
            held = ends - np.arange(1, ends.shape[-1] + 1)  # data up to and with each block
            there[..., 1:] |= held[..., :-1] < task.copied
            if (held[..., -1] >= task.copied).all():
                break
            more = _block_lengths(task, rng, (*shape, 1))
            ends = np.concatenate([ends, ends[..., -1:] + more], -1)
            there = np.concatenate([there, np.zeros_like(there[..., :1])], -1)
    starts = np.concatenate([np.zeros_like(ends[..., :1]), ends[..., :-1]], -1)
    return Blocks(starts, there, np.where(there, ends, 0).max(-1))


def _fillers(task, rng, lengths_NK: np.ndarray) -> Blocks:
    """R blocks that fill exactly these lengths: the last one cut, or all whole."""
    shape, longest = lengths_NK.shape, int(lengths_NK.max())
    if task.filler == "whole":
        return _whole_fillers(task, rng, lengths_NK, longest)
    ends = np.zeros((*shape, 0), np.int64)
    while longest and (ends.shape[-1] == 0 or (ends[..., -1] < lengths_NK).any()):
        blocks = 1 if ends.shape[-1] else 2 + int(longest / (1 + task.block_trials * task.block_probability))
        more = np.cumsum(_block_lengths(task, rng, (*shape, blocks)), -1)
        ends = np.concatenate([ends, more + ends[..., -1:]], -1) if ends.shape[-1] else more
    starts = np.concatenate([np.zeros((*shape, 1), np.int64), ends[..., :-1]], -1) if longest else ends
    return Blocks(starts, starts < lengths_NK[..., None], lengths_NK)


@lru_cache(maxsize=16)
def _whole_cdf(trials: int, probability: float, longest: int) -> np.ndarray:
    """[n, b - 1]: P(the first of whole blocks that sum to n is b long or shorter)."""
    from scipy.stats import binom

    p = np.concatenate([[0.0], binom.pmf(np.arange(trials + 1), trials, probability)])
    hit = np.zeros(longest + 1)  # P(some whole number of blocks sums to n)
    hit[0] = 1.0
    table = np.ones((longest + 1, trials + 1))
    for n in range(1, longest + 1):
        ways = np.array([p[b] * hit[n - b] if b <= n else 0.0 for b in range(1, trials + 2)])
        hit[n] = ways.sum()
        table[n] = np.cumsum(ways) / hit[n]
        table[n, min(n, trials + 1) - 1 :] = 1.0
    return table


def _whole_fillers(task, rng, lengths_NK: np.ndarray, longest: int) -> Blocks:
    cdf, left, starts, there = _whole_cdf(task.block_trials, task.block_probability, longest), lengths_NK, [], []
    while (left > 0).any():
        starts.append(lengths_NK - left)
        there.append(left > 0)
        block = 1 + (rng.random(left.shape)[..., None] >= cdf[left]).sum(-1)
        left = np.where(left > 0, left - block, 0)
    if not starts:
        return Blocks(np.zeros((*left.shape, 0), np.int64), np.zeros((*left.shape, 0), bool), lengths_NK)
    return Blocks(np.stack(starts, -1), np.stack(there, -1), lengths_NK)


def _fill(task, rng, gap: Blocks, fill: Blocks, kind: np.ndarray):
    """Values by rank (N, V), then for each cycle the first source's rank (N, K, 1), how many tokens were pasted (N, K),
    and which source token each pasted one is (N, K, M). With "raw" sources every token has a rank: its place."""
    N, K = kind.shape
    M, raw = task.copied, task.source == "raw"
    held_gap, held_fill = (gap.length, fill.length) if raw else (gap.data, fill.data)
    width = int((held_gap + held_fill + M + 2 * raw).sum(1).max()) + 2 * M
    values = rng.integers(task.symbols, size=(N, width), dtype=np.int32)
    flat, at, m = values.ravel(), np.arange(N) * width + M, np.arange(M)
    row = at - M
    first, pasted = np.empty((N, K, 1), np.int64), np.full((N, K), M)
    order = np.broadcast_to(m, (N, K, M)).copy() if kind.any() else m
    marks = np.array([task.control(k) for k in "CS"], np.int32)
    for k in range(K):
        if raw:
            _put_blocks(task, flat, at, gap, k)
        at = at + held_gap[:, k]
        source = flat[(at - M)[:, None] + m]
        first[:, k, 0] = at - M - row
        if kind.any():
            source, pasted[:, k], order[:, k] = _evens(task, flat, at, source, kind[:, k])
        if raw:
            flat[at] = flat[at + 1 + fill.length[:, k]] = marks[kind[:, k]]
            _put_blocks(task, flat, at + 1, fill, k)
            at = at + 2
        at = at + held_fill[:, k]
        places = at[:, None] + m
        flat[places] = source if not kind.any() else np.where(m < pasted[:, k, None], source, flat[places])
        at = at + pasted[:, k]
    return values, first, pasted, order


def _put_blocks(task, flat: np.ndarray, at: np.ndarray, blocks: Blocks, k: int) -> None:
    places = at[:, None] + blocks.starts[:, k]
    flat[places[blocks.there[:, k]]] = task.control("R")


def _evens(task, flat: np.ndarray, at: np.ndarray, source_NM: np.ndarray, kind_N: np.ndarray):
    """What C and S paste of their sources: tokens in front, how many, and which."""
    selective = kind_N == 1
    if task.even_source == "ensured":
        odd = selective & (source_NM % 2 == 1).all(1)
        source_NM[odd, -1] -= 1
        flat[at[odd] - 1] = source_NM[odd, -1]
    kept = (source_NM % 2 == 0) | ~selective[:, None]
    order = np.argsort(~kept, axis=1, kind="stable")
    return np.take_along_axis(source_NM, order, 1), kept.sum(1), order


def _controls(task, start, T: int, begin, opened, closed, gap: Blocks, fill: Blocks, kind):
    """(N, T): the control token at each place of the window, 0 for data; and (N,) how many stand before the window."""
    N = len(start)
    canvas, before = np.zeros((N, T + 1), np.int32), np.zeros(N, np.int64)
    marks = np.array([task.control(k) for k in "CS"], np.int32)[kind]
    rows = np.arange(N)[:, None]

    def put(places, there, codes):
        relative = (places - start.reshape(-1, *[1] * (places.ndim - 1))).reshape(N, -1)
        there = there.reshape(N, -1) if there is not None else np.ones_like(relative, bool)
        before[:] += (there & (relative < 0)).sum(1)
        inside = there & (relative >= 0) & (relative < T)
        canvas[rows, np.where(inside, relative, T)] = codes

    put(begin[..., None] + gap.starts, gap.there, task.control("R"))
    put((opened + 1)[..., None] + fill.starts, fill.there, task.control("R"))
    put(opened, None, marks)
    put(closed, None, marks)
    return canvas[:, :T], before


def _scored(task, T: int, paste_NK, pasted_NK, source_NK1, order) -> tuple[np.ndarray, np.ndarray]:
    """(N, T) each: which places are scored, and which of them have their source in the window. paste_NK is the place of
    each first pasted token, source_NK1 the rank of the first marked one, from the window's first: both may be negative."""
    N, M = len(paste_NK), task.copied
    places = paste_NK[..., None] + np.arange(M)
    there = (np.arange(M) < pasted_NK[..., None]) & (places >= task.skip) & (places < T)
    if task.cut_pastes == "masked":
        there &= (paste_NK >= task.skip)[..., None]
    if task.unreachable == "masked":
        there &= source_NK1 >= 0
    scored, known = np.zeros((N, T + 1), bool), np.zeros((N, T + 1), bool)
    rows, places = np.arange(N)[:, None], np.where(there, places, T).reshape(N, -1)
    scored[rows, places] = True
    known[rows, places] = np.broadcast_to(source_NK1 + order >= 0, there.shape).reshape(N, -1)
    return scored[:, :T], known[:, :T]
