"""Windows of study 2's stream, drawn by the hundred without a loop over sequences.

A stream is a chain of cycles, each of them R blocks (the gap), a mark, R blocks (the filler), the mark again, and a paste:

    [R x x R x x x] C [R x x x] C [x x x x]   [R x x ...
     gap               filler      paste       next cycle
    ↑               ↑           ↑
    begin         opened      closed

Drawing goes in three steps. `draw_plan` draws the lengths of all blocks and the kinds of the marks. `_write` fills in the
values cycle by cycle, because a source may be an earlier paste. `draw_windows` then cuts a window out of each stream. In
between, the data tokens of a stream are numbered in order, without the control tokens: this is their *rank*. By rank, a
source and its paste are slices. With "raw" sources, which may hold control tokens, every token has a rank.

Shape suffixes: N streams, K cycles, B blocks, M copied tokens, T places of the window.
"""

from dataclasses import dataclass

import numpy as np

from ..core.cells import Cell
from ..core.token_task import IGNORE
from .blocks import Blocks
from .plan import Plan, draw_plan


@dataclass
class Windows:
    """tokens, labels (N, T); known (N, T): whether a scored token's source stands in the window."""

    tokens: np.ndarray
    labels: np.ndarray
    known: np.ndarray


@dataclass
class Written:
    """The values of the streams, and where each paste came from."""

    values: np.ndarray  # (N, V): by rank
    source: np.ndarray  # (N, K, 1): the rank of the first source token
    pasted: np.ndarray  # (N, K): how many tokens were pasted
    order: np.ndarray  # (N, K, M), or (M,) for all: which source token each pasted one is


class Layout:
    """Places of the streams' parts, (N, K) each, from the beginning of the stream."""

    def __init__(self, plan: Plan, pasted_NK: np.ndarray, margin: int):
        """margin: how many tokens stand before the first cycle."""
        self.length = plan.gap.length + plan.filler.length + 2 + pasted_NK
        self.begin = margin + np.cumsum(self.length, 1) - self.length
        self.opened = self.begin + plan.gap.length
        self.closed = self.opened + 1 + plan.filler.length


def draw_windows(task, rng: np.random.Generator, count: int, cell: Cell) -> Windows:
    """Draw `count` windows of cell.length tokens, each from a stream of its own, cut at a random place of it.

    The window begins uniformly in the second or third cycle, so that the first one stands before every window.
    """
    plan = draw_plan(task, rng, count, cell)
    written = _write(task, rng, plan)
    layout = Layout(plan, written.pasted, margin=task.copied)
    start_N = layout.begin[:, 1] + (rng.random(count) * layout.length[:, 1:3].sum(1)).astype(np.int64)
    if task.source == "raw":
        first_rank_N = start_N
        tokens = written.values[np.arange(count)[:, None], start_N[:, None] + np.arange(cell.length)]
    else:
        controls, before_N = _controls(task, plan, layout, start_N, cell.length)
        first_rank_N = start_N - before_N
        rank = first_rank_N[:, None] + np.cumsum(controls == 0, 1) - 1
        tokens = np.where(controls, controls, np.take_along_axis(written.values, rank, 1))
    tokens = tokens.astype(np.int64)
    paste_NK = layout.closed + 1 - start_N[:, None]
    source_NK1 = written.source - first_rank_N[:, None, None]
    scored, known = _scored(task, cell.length, paste_NK, source_NK1, written)
    return Windows(tokens, np.where(scored, tokens, IGNORE), known)


def _write(task, rng, plan: Plan) -> Written:
    """Fill in the values of all streams, one cycle after the other."""
    N, K = plan.kind.shape
    M, raw, selective = task.copied, task.source == "raw", plan.kind.any()
    gap_ranks, filler_ranks = (plan.gap.length, plan.filler.length) if raw else (plan.gap.data, plan.filler.data)
    width = int((gap_ranks + filler_ranks + M + 2 * raw).sum(1).max()) + 2 * M
    values = rng.integers(task.symbols, size=(N, width), dtype=np.int32)
    flat, row_N, m = values.ravel(), np.arange(N) * width, np.arange(M)
    at_N = row_N + M  # where the next token of each stream goes
    source, pasted = np.empty((N, K, 1), np.int64), np.full((N, K), M)
    order = np.broadcast_to(m, (N, K, M)).copy() if selective else m
    marks_NK = plan.marks(task)
    for k in range(K):
        if raw:
            _write_blocks(task, flat, at_N, plan.gap, k)
        at_N = at_N + gap_ranks[:, k]
        source[:, k, 0] = at_N - M - row_N
        source_NM = flat[at_N[:, None] - M + m]
        if selective:
            kept_NM = _kept(task, flat, at_N, source_NM, plan.kind[:, k])
        if raw:
            flat[at_N] = flat[at_N + 1 + plan.filler.length[:, k]] = marks_NK[:, k]
            _write_blocks(task, flat, at_N + 1, plan.filler, k)
            at_N = at_N + 2
        at_N = at_N + filler_ranks[:, k]
        if selective:
            place_NM = np.cumsum(kept_NM, 1) - 1  # of each kept source token in the paste
            rows, which = np.nonzero(kept_NM)
            places = place_NM[rows, which]
            order[rows, k, places] = which
            flat[at_N[rows] + places] = source_NM[rows, which]
            pasted[:, k] = place_NM[:, -1] + 1
        else:
            flat[at_N[:, None] + m] = source_NM
        at_N = at_N + pasted[:, k]
    return Written(values, source, pasted, order)


def _kept(task, flat: np.ndarray, at_N: np.ndarray, source_NM: np.ndarray, kind_N: np.ndarray) -> np.ndarray:
    """Return (N, M): which of their source tokens C (all) and S (the even ones) paste. Where an S would paste none, its
    last source token is made even, here and in `flat`."""
    kept_NM = (source_NM & 1) == 0
    if not kind_N.all():
        kept_NM |= (kind_N == 0)[:, None]
    if task.even_source == "ensured":
        odd = np.flatnonzero(~kept_NM.any(1))
        if len(odd):
            source_NM[odd, -1] -= 1
            flat[at_N[odd] - 1] = source_NM[odd, -1]
            kept_NM[odd, -1] = True
    return kept_NM


def _write_blocks(task, flat: np.ndarray, at_N: np.ndarray, blocks: Blocks, k: int) -> None:
    """Write the R of each block of cycle k, counted from `at_N`."""
    places = at_N[:, None] + blocks.starts[:, k]
    flat[places[blocks.there[:, k]]] = task.control("R")


def _controls(task, plan: Plan, layout: Layout, start_N: np.ndarray, T: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the control token at each place of the window (N, T), 0 for data, and how many stand before the window
    (N,)."""
    N = len(start_N)
    canvas, before_N = (
        np.zeros((N, T + 1), np.int32),
        np.zeros(N, np.int64),
    )  # what lies outside goes into the last column
    flat, row_N1 = canvas.ravel(), np.arange(N)[:, None] * (T + 1)

    def put(places, there, codes):
        relative = (places - start_N.reshape(-1, *[1] * (places.ndim - 1))).reshape(N, -1)
        if there is not None:
            relative = np.where(there.reshape(N, -1), relative, T)
        before_N[:] += np.count_nonzero(relative < 0, axis=1)
        flat[row_N1 + np.where((relative < 0) | (relative > T), T, relative)] = codes

    put(layout.begin[..., None] + plan.gap.starts, plan.gap.there, task.control("R"))
    put((layout.opened + 1)[..., None] + plan.filler.starts, plan.filler.there, task.control("R"))
    marks_NK = plan.marks(task)
    put(layout.opened, None, marks_NK)
    put(layout.closed, None, marks_NK)
    return canvas[:, :T], before_N


def _scored(task, T: int, paste_NK, source_NK1, written: Written) -> tuple[np.ndarray, np.ndarray]:
    """Return (N, T) each: which places are scored, and which of them have their source in the window.

    paste_NK: the place of each first pasted token; source_NK1: the rank of each first source token. Both are counted from
    the window's first token and may be negative."""
    N, m = len(paste_NK), np.arange(task.copied)
    places = paste_NK[..., None] + m
    there = (m < written.pasted[..., None]) & (places >= task.skip) & (places < T)
    if task.cut_pastes == "masked":
        there &= (paste_NK >= task.skip)[..., None]
    if task.unreachable == "masked":
        there &= source_NK1 >= 0
    flat = np.arange(N)[:, None] * (T + 1) + np.where(there, places, T).reshape(N, -1)
    scored = np.zeros((N, T + 1), bool)
    scored.ravel()[flat] = True
    if task.unreachable == "masked":
        return scored[:, :T], scored[:, :T]
    known = np.zeros((N, T + 1), bool)
    known.ravel()[flat] = np.broadcast_to(source_NK1 + written.order >= 0, there.shape).reshape(N, -1)
    return scored[:, :T], known[:, :T]
