"""Study 2's stream: copy what stood before a mark, when the mark comes again."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .base import IGNORE, Task
from .cells import Cell
from .copying import induction_baselines

KINDS = {"C": "all of them", "S": "the even ones, in order"}


@dataclass(frozen=True, kw_only=True)
class DelayCopy(Task):
    """Full and selective delay copy (Nevermann & Gros 2026, arXiv 2609.11913).

        R x x x x R x x x [x x x x] C R y y y R y y C (x x x x) R z z ...       m = 4, distance 8
                           source     └── d = 8 ──┘    paste: scored

    A stream of R blocks (control token R and ℓ ~ Binomial(block_trials, block_probability) random data tokens, never
    scored) and pairs of C. The first C marks the m data tokens before it; only R blocks stand between the pair, and d
    tokens in all; after the second C the m tokens are pasted. S pastes the even-valued ones only. `kinds` mixes them
    ("R" always runs): "C", "S" or "CS", with equal probability per pair.

    A window of `window` tokens is cut at a random place. Scored: pasted tokens from place `skip` on, of pastes whose
    first token is scored, so that first and rest stay apart. In training each pair draws d uniformly from d_min..d_max.

    *Reconstructed* (open in the paper; our defaults): d counts the tokens between the two marks, so 0 is adjacent; the
    last R block is cut to meet d exactly; source tokens are the last m *data* tokens, which may stand in an earlier
    paste; an S whose source has no even token gets one (the last one's lowest bit is dropped) unless `even_source` is
    "as_drawn"; 1 to `gap_blocks` R blocks stand between pairs. `unreachable`: a target whose source precedes the window is
    "scored", as stated, or "masked". `test_distances` are those to ask beyond the trained range (default: up to three
    times d_max and 16 more), `test_windows` the longer windows.
    """

    name = "delay_copy"
    paste = True

    kinds: str = "C"
    symbols: int = 32
    copied: int = 4
    window: int = 64
    d_min: int = 4
    d_max: int = 8
    skip: int = 18
    block_trials: int = 9
    block_probability: float = 2 / 3
    gap_blocks: int = 3
    unreachable: str = "masked"
    even_source: str = "ensured"
    test_distances: tuple[int, ...] | None = None
    test_windows: tuple[int, ...] | None = None

    def check(self) -> None:
        self.require(self.kinds in ("C", "S", "CS"), f"kinds is {self.kinds!r}; allowed: C, S, CS")
        self.require(self.unreachable in ("scored", "masked"), f"unreachable is {self.unreachable!r}: scored or masked")
        self.require(
            self.even_source in ("ensured", "as_drawn"), f"even_source is {self.even_source!r}: ensured or as_drawn"
        )
        self.require(0 <= self.d_min <= self.d_max, f"d_min {self.d_min}, d_max {self.d_max}: 0 <= d_min <= d_max")
        needed = self.skip + self.d_max + self.copied + 2
        self.require(
            self.window >= needed,
            f"window {self.window} is too short for a delay of {self.d_max}: it needs {needed} tokens or more",
        )

    @property
    def data_symbols(self) -> int:
        return self.symbols

    @property
    def control_names(self) -> tuple[str, ...]:
        return ("R", *self.kinds)

    @cached_property
    def distances(self) -> tuple[int, ...]:
        if self.test_distances is not None:
            return tuple(self.test_distances)
        fits = self.window - self.skip - 2
        return tuple(d for d in range(3 * self.d_max + 17) if d < fits)

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        trained = tuple(Cell(self.window, d) for d in range(self.d_min, self.d_max + 1))
        far = [d for d in self.distances if d > self.d_max]
        near = [d for d in self.distances if d < self.d_min]
        windows = (2 * self.window, 4 * self.window) if self.test_windows is None else self.test_windows
        return {
            "train": (Cell(self.window, None),),
            "validation": trained,
            "test": trained,
            "longer": tuple(Cell(w, d) for w in windows for d in range(self.d_min, self.d_max + 1)),
            "farther": tuple(Cell(self.window, d) for d in far),
            "nearer": tuple(Cell(self.window, d) for d in near),
            "both": tuple(Cell(w, d) for w in windows for d in far),
        }

    def trained_cells(self) -> set[Cell]:
        return {Cell(self.window, d) for d in range(self.d_min, self.d_max + 1)} | {Cell(self.window, None)}

    def check_cell(self, cell: Cell) -> None:
        distance = self.d_max if cell.distance is None else cell.distance
        self.require(
            0 <= distance <= cell.length - self.skip - 2,
            f"a delay of {distance} does not fit a window of {cell.length} with {self.skip} unscored tokens",
        )

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        window = self.draw_window(rng, count, cell)
        return window["tokens"], window["labels"]

    def draw_window(self, rng: np.random.Generator, count: int, cell: Cell) -> dict[str, np.ndarray]:
        """`tokens`, `labels` and, for scored places, `source`: the place each target is copied from (negative: before
        the window)."""
        longest = self.d_max if cell.distance is None else cell.distance
        unit = self.gap_blocks * (self.block_trials + 1) + longest + 2 + self.copied
        stream = _Stream(self, rng, count, cell.length + 2 * unit + 4 * self.copied)
        stream.filler(np.full(count, 3 * self.copied))
        while not stream.full:
            stream.pair(cell.distance)
        start = 3 * self.copied + rng.integers(unit, size=count)
        columns = start[:, None] + np.arange(cell.length)
        tokens, source, nth = (np.take_along_axis(a, columns, 1) for a in (stream.tokens, stream.source, stream.nth))
        source = source - start[:, None]
        place = np.arange(cell.length)
        scored = (nth >= 0) & (place - nth >= self.skip)
        if self.unreachable == "masked":
            scored &= source >= 0
            first = np.maximum(place - np.maximum(nth, 0), 0)  # a paste counts only where its first token does
            scored &= np.take_along_axis(scored, first, 1)
        return {"tokens": tokens, "labels": np.where(scored, tokens, IGNORE), "source": source}

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        """{place: answer} by reading the marks of one sequence. A mark that data follows closes a pair: the first one may
        have been opened before the window."""
        answers, data, opened = {}, [], None
        for place, token in enumerate(tokens[int(self.bos) :], int(self.bos)):
            if token < self.symbols:
                data.append(token)
                continue
            name = self.vocabulary[token].strip("[]")
            if name not in KINDS:
                continue
            follows_data = place + 1 < len(tokens) and tokens[place + 1] < self.symbols
            if opened is not None:
                if name == "S":  # with a source that begins before the window, which even token comes first is unknown
                    opened = [] if None in opened else [x for x in opened if x % 2 == 0]
                answers |= {place + 1 + n: x for n, x in enumerate(opened) if x is not None}
                opened = None
            elif not follows_data:
                missing = max(0, self.copied - len(data))
                opened = [None] * missing + data[-self.copied :]
        return answers

    def ceiling(self, cell: Cell) -> float:
        """The share of scored targets whose source stands in the window, and chance for the rest (2,000 windows)."""
        if self.unreachable == "masked":
            return 1.0
        window = self.draw_window(np.random.default_rng(0), 2000, cell)
        known = (window["source"] >= 0)[window["labels"] != IGNORE].mean()
        return float(known + (1 - known) * self.chance(cell))

    def baselines(self, cell: Cell) -> dict[str, float]:
        tokens, labels = self.draw(np.random.default_rng(0), 400, cell)
        return induction_baselines(tokens, labels)


class _Stream:
    """N streams side by side, written unit by unit. `nth` is a pasted token's place in its paste, -1 elsewhere; `source`
    the column it was copied from."""

    def __init__(self, task: DelayCopy, rng: np.random.Generator, count: int, length: int):
        self.task, self.rng, self.length = task, rng, length
        slack = task.gap_blocks * (task.block_trials + 1) + length  # one unit may run over the end
        self.tokens = np.zeros((count, length + slack), np.int64)
        self.source = np.zeros_like(self.tokens)
        self.nth = np.full_like(self.tokens, -1)
        self.at = np.zeros(count, np.int64)  # the next free column of each row
        self.data = np.zeros_like(self.tokens)  # columns of the data tokens, in order
        self.seen = np.zeros(count, np.int64)  # how many
        self.rows = np.arange(count)

    @property
    def full(self) -> bool:
        return bool((self.at >= self.length).all())

    def filler(self, lengths: np.ndarray) -> None:
        """R blocks that fill exactly `lengths` tokens, the last one cut."""
        width = int(lengths.max()) if len(lengths) else 0
        if width == 0:
            return
        task, shape = self.task, (len(lengths), width)
        tokens = self.rng.integers(task.symbols, size=shape)
        blocks = 1 + self.rng.binomial(task.block_trials, task.block_probability, size=(len(lengths), width // 2 + 2))
        starts = np.cumsum(blocks, 1)
        marks = np.zeros((len(lengths), width + 1), bool)
        marks[:, 0] = True
        np.put_along_axis(marks, np.minimum(starts, width), True, 1)
        marks = marks[:, :width]
        tokens[marks] = task.control("R")
        self._write(tokens, lengths, marks)

    def gap(self) -> None:
        """One to `gap_blocks` whole R blocks."""
        task = self.task
        blocks = 1 + self.rng.binomial(task.block_trials, task.block_probability, size=(len(self.at), task.gap_blocks))
        blocks *= np.arange(task.gap_blocks) <= self.rng.integers(task.gap_blocks, size=len(self.at))[:, None]
        lengths, ends = blocks.sum(1), np.cumsum(blocks, 1)
        width = int(lengths.max())
        tokens = self.rng.integers(task.symbols, size=(len(self.at), width))
        marks = np.zeros((len(self.at), width + 1), bool)
        marks[:, 0] = True
        np.put_along_axis(marks, ends, True, 1)
        marks = marks[:, :width]
        tokens[marks] = task.control("R")
        self._write(tokens, lengths, marks)

    def pair(self, distance: int | None) -> None:
        """A gap, a mark, d tokens of R blocks, the mark again, and the paste."""
        task, count = self.task, len(self.at)
        self.gap()
        kind = self.rng.integers(len(task.kinds), size=count)
        mark = np.array([task.control(k) for k in task.kinds])[kind]
        source = np.take_along_axis(self.data, self.seen[:, None] - task.copied + np.arange(task.copied), 1)
        copies_all = np.array([k == "C" for k in task.kinds])[kind]
        if task.even_source == "ensured":
            self._ensure_even(source[~copies_all], self.rows[~copies_all])
        self._mark(mark)
        d = self.rng.integers(task.d_min, task.d_max + 1, size=count) if distance is None else np.full(count, distance)
        self.filler(d)
        self._mark(mark)
        values = np.take_along_axis(self.tokens, source, 1)
        kept = (values % 2 == 0) | copies_all[:, None]
        order = np.argsort(~kept, axis=1, kind="stable")
        values, source = (np.take_along_axis(a, order, 1) for a in (values, source))
        self._write(values, kept.sum(1), np.zeros_like(kept), source)

    def _ensure_even(self, source: np.ndarray, rows: np.ndarray) -> None:
        """Make the last source token even where all are odd and it is not itself a copy."""
        last = source[:, -1]
        odd = (self.tokens[rows[:, None], source] % 2 == 1).all(1) & (self.nth[rows, last] < 0)
        self.tokens[rows[odd], last[odd]] -= 1

    def _mark(self, mark: np.ndarray) -> None:
        self.tokens[self.rows, self.at] = mark
        self.at += 1

    def _write(self, tokens, lengths, is_control, source=None) -> None:
        """Append the first `lengths` of each row's tokens, where there is room."""
        column = np.arange(tokens.shape[1])
        live = column < lengths[:, None]
        row = np.broadcast_to(self.rows[:, None], tokens.shape)[live]
        at = (self.at[:, None] + column)[live]
        self.tokens[row, at] = tokens[live]
        if source is not None:
            self.nth[row, at] = np.broadcast_to(column, tokens.shape)[live]
            self.source[row, at] = source[live]
        is_data = live & ~is_control
        rank = self.seen[:, None] + np.cumsum(is_data, 1) - 1
        self.data[np.broadcast_to(self.rows[:, None], tokens.shape)[is_data], rank[is_data]] = (
            self.at[:, None] + column
        )[is_data]
        self.at += lengths
        self.seen += is_data.sum(1)
