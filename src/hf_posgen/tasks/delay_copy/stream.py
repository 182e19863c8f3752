"""Windows of study 2's stream, drawn by the hundred without a loop over sequences.

A stream is a chain of cycles: R blocks, a mark, R blocks, the mark again, a paste. Where everything stands follows from
the drawn lengths alone; the values are then filled in cycle by cycle, because a source may be an earlier paste. For this
the data tokens of a stream are numbered in order (their *rank*): there a source and its paste are plain slices.

Shape suffixes: N streams, K cycles, B blocks, M copied tokens, T places of the window.
"""

from dataclasses import dataclass

import numpy as np

from ..core.cells import Cell
from ..core.token_task import IGNORE
from .blocks import Blocks, fillers, gaps, joined


@dataclass
class Windows:
    """tokens, labels (N, T); known (N, T): whether a scored token's source stands in the window."""

    tokens: np.ndarray
    labels: np.ndarray
    known: np.ndarray


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
        gap, fill = gaps(task, rng, shape), fillers(task, rng, task.between(distance))
        least = gap.length + fill.length + 2 + np.array([shortest_paste[k] for k in "CS"])[kind]
        filled += least[:, 0 if parts else 3 :].sum(1)
        parts.append((gap, fill, kind))
    gap, fill, kind = zip(*parts, strict=True)
    return joined(gap), joined(fill), np.concatenate(kind, 1)


def _fill(task, rng, gap: Blocks, fill: Blocks, kind: np.ndarray):
    """Values by rank (N, V), then for each cycle the first source's rank (N, K, 1), how many tokens were pasted (N, K),
    and which source token each pasted one is (N, K, M). With "raw" sources every token has a rank: its place."""
    N, K = kind.shape
    M, raw = task.copied, task.source == "raw"
    held_gap, held_fill = (gap.length, fill.length) if raw else (gap.data, fill.data)
    width = int((held_gap + held_fill + M + 2 * raw).sum(1).max()) + 2 * M
    values = rng.integers(task.symbols, size=(N, width), dtype=np.int32)
    flat, row, m = values.ravel(), np.arange(N) * width, np.arange(M)
    at, selective = row + M, kind.any()
    first, pasted = np.empty((N, K, 1), np.int64), np.full((N, K), M)
    order = np.broadcast_to(m, (N, K, M)).copy() if selective else m
    marks = np.array([task.control(k) for k in "CS"], np.int32)[kind]
    for k in range(K):
        if raw:
            _put_blocks(task, flat, at, gap, k)
        at = at + held_gap[:, k]
        begin = at - M
        first[:, k, 0] = begin - row
        source = flat[begin[:, None] + m]
        if selective:
            kept = _kept(task, flat, at, source, kind[:, k])
        if raw:
            flat[at] = flat[at + 1 + fill.length[:, k]] = marks[:, k]
            _put_blocks(task, flat, at + 1, fill, k)
            at = at + 2
        at = at + held_fill[:, k]
        if not selective:
            flat[at[:, None] + m] = source
            at = at + M
            continue
        place = np.cumsum(kept, 1)
        pasted[:, k] = place[:, -1]
        rows, which = np.nonzero(kept)
        place = place[rows, which] - 1
        order[rows, k, place] = which
        flat[at[rows] + place] = source[rows, which]
        at = at + pasted[:, k]
    return values, first, pasted, order


def _kept(task, flat: np.ndarray, at: np.ndarray, source_NM: np.ndarray, kind_N: np.ndarray) -> np.ndarray:
    """(N, M): which of their source tokens C (all) and S (the even ones) paste; may change the last one."""
    kept = (source_NM & 1) == 0
    if not kind_N.all():
        kept |= (kind_N == 0)[:, None]
    if task.even_source == "ensured":
        odd = np.flatnonzero(~kept.any(1))
        if len(odd):
            source_NM[odd, -1] -= 1
            flat[at[odd] - 1] = source_NM[odd, -1]
            kept[odd, -1] = True
    return kept


def _put_blocks(task, flat: np.ndarray, at: np.ndarray, blocks: Blocks, k: int) -> None:
    places = at[:, None] + blocks.starts[:, k]
    flat[places[blocks.there[:, k]]] = task.control("R")


def _controls(task, start, T: int, begin, opened, closed, gap: Blocks, fill: Blocks, kind):
    """(N, T): the control token at each place of the window, 0 for data; and (N,) how many stand before the window."""
    N = len(start)
    canvas, before = np.zeros((N, T + 1), np.int32), np.zeros(N, np.int64)
    flat, row = canvas.ravel(), np.arange(N)[:, None] * (T + 1)
    marks = np.array([task.control(k) for k in "CS"], np.int32)[kind]

    def put(places, there, codes):
        relative = (places - start.reshape(-1, *[1] * (places.ndim - 1))).reshape(N, -1)
        if there is not None:
            relative = np.where(there.reshape(N, -1), relative, T)
        before[:] += np.count_nonzero(relative < 0, axis=1)
        flat[row + np.where((relative < 0) | (relative > T), T, relative)] = codes

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
    scored = np.zeros((N, T + 1), bool)
    flat = np.arange(N)[:, None] * (T + 1) + np.where(there, places, T).reshape(N, -1)
    scored.ravel()[flat] = True
    if task.unreachable == "masked":
        return scored[:, :T], scored[:, :T]
    known = np.zeros((N, T + 1), bool)
    known.ravel()[flat] = np.broadcast_to(source_NK1 + order >= 0, there.shape).reshape(N, -1)
    return scored[:, :T], known[:, :T]
