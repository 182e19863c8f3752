"""Study 2's stream: copy what stood before a mark, when the mark comes again."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np

from ..core.bag_of_words import measured_bag_of_words
from ..core.cells import Cell, grid
from ..core.copying import ngram_baselines
from ..core.parameters import Numbers
from ..core.token_task import IGNORE, TokenTask
from .stream import draw_windows

KINDS = ("C", "S")


@dataclass(frozen=True, kw_only=True)
class DelayCopy(TokenTask):
    """Full and selective delay copy (Nevermann & Gros 2026, arXiv 2609.11913).

        R x x x x R x x x [x x x x] C R y y y R y y C (x x x x) R z z ...       copied 4, distance 7
                           source     └── d = 7 ──┘    paste: scored
        R x x x x R x x x [3 6 4 7] S R y y y R y y S (6 4) R z z ...           selective: the even ones, in order

    A stream of R blocks (control token R and ℓ ~ Binomial(block_trials, block_probability) random data tokens, never
    scored) and pairs of C or S. The first mark of a pair marks the `copied` tokens before it; only R blocks stand between
    the pair, which is d apart; after the second the marked tokens are pasted. `kinds` says which pairs a stream holds ("C",
    "S", or "CS": each pair either, equally often), `window` the tokens cut from it at a random place. In training each
    pair draws d from d_min..d_max (S from s_min..s_max, the same unless given) without `held_out`; a cell of one distance
    holds pairs of that d only, of the kind `asked` ("all": those of `kinds`).

    Scored: pasted tokens from place `skip` on. `unreachable`: targets whose source precedes the window are "scored", as
    the paper does (see `ceiling`), or "masked", the whole paste with its first. `cut_pastes`: pastes that begin before
    place `skip` are scored from there on, as the paper does, or masked whole (our default: a run of scored labels then
    always begins with the first pasted token).

    *Reconstructed* (open in the paper; the first value is our default): `distance_counts`: d counts the tokens "between"
    the two marks, so that 0 is adjacent, or the steps from mark to mark ("marks"). `filler`: the last R block between the
    marks is "cut" to meet d exactly, or blocks are "whole", drawn given that they sum to d. `source`: the marked tokens
    are the last data tokens, an earlier paste included ("data"), the last tokens whatever they are ("raw"), or the last
    data tokens with as many R blocks before the mark as keep earlier pastes out ("fresh"). `even_source`: an S whose
    source has no even token gets one (the last one's lowest bit is dropped; "ensured"), or pastes nothing ("as_drawn").
    1 to `gap_blocks` R blocks stand between pairs, each number equally often.

    `test_distances` are the untrained distances to ask (default: up to four times d_max, as far as the window holds
    them), `test_windows` the longer windows (default: twice). Both may be written "1-14,26-120".
    """

    name = "delay_copy"
    paste = True
    control_names = ("R", "C", "S")
    version = 2

    kinds: Literal["C", "S", "CS"] = "C"
    asked: Literal["all", "C", "S"] = "all"
    symbols: int = 32
    copied: int = 4
    window: int = 64
    d_min: int = 4
    d_max: int = 8
    s_min: int | None = None
    s_max: int | None = None
    held_out: Numbers = ()
    skip: int = 18
    block_trials: int = 9
    block_probability: float = 2 / 3
    gap_blocks: int = 3
    distance_counts: Literal["between", "marks"] = "between"
    filler: Literal["cut", "whole"] = "cut"
    source: Literal["data", "raw", "fresh"] = "data"
    even_source: Literal["ensured", "as_drawn"] = "ensured"
    unreachable: Literal["masked", "scored"] = "masked"
    cut_pastes: Literal["masked", "scored"] = "masked"
    test_distances: Numbers | None = None
    test_windows: Numbers | None = None

    def derived(self) -> dict:
        low, high, taken = self.d_min, self.d_max, {*self.trained_distances(self.asked), *self.held_out}
        near = {self.least, low // 4, low // 2, low - 2, low - 1}
        far = {*range(high + 1, 2 * high + 1), 5 * high // 2, 3 * high, 4 * high}
        new = sorted(d for d in near | far if d not in taken and self._fits(Cell(self.window, d)))
        return {
            "s_min": self.d_min,
            "s_max": self.d_max,
            "test_distances": tuple(new),
            "test_windows": (2 * self.window,),
        }

    def check(self) -> None:
        need = self.require
        need(self.symbols >= 2, f"symbols is {self.symbols}; it must be at least 2")
        need(self.copied >= 1, f"copied is {self.copied}; it must be at least 1")
        need(self.skip >= 0, f"skip is {self.skip}; it must be at least 0")
        need(self.gap_blocks >= 1, f"gap_blocks is {self.gap_blocks}; it must be at least 1")
        need(self.block_trials >= 1, f"block_trials is {self.block_trials}; it must be at least 1")
        need(0 < self.block_probability <= 1, f"block_probability is {self.block_probability}; it must be in (0, 1]")
        need(self.asked == "all" or self.asked in self.kinds, f"asked is {self.asked!r}, kinds is {self.kinds!r}")
        for kind, (low, high) in (("d", (self.d_min, self.d_max)), ("s", (self.s_min, self.s_max))):
            if low is not None and high is not None:
                need(
                    self.least <= low <= high,
                    f"{kind}_min {low}, {kind}_max {high}: they must satisfy {self.least} <= {kind}_min <= {kind}_max",
                )
        need((self.s_min is None) == (self.s_max is None), "s_min and s_max are given together or not at all")
        low, high = min(self._range("C")[0], self._range("S")[0]), max(self._range("C")[-1], self._range("S")[-1])
        need(
            all(low < d < high for d in self.held_out), f"held_out {list(self.held_out)} must lie inside {low}..{high}"
        )

    @property
    def least(self) -> int:
        """The smallest distance there is."""
        return int(self.distance_counts == "marks")

    @property
    def data_symbols(self) -> int:
        return self.symbols

    def _range(self, kind: str) -> range:
        own = kind == "S" and self.s_min is not None
        return range(self.s_min, self.s_max + 1) if own else range(self.d_min, self.d_max + 1)

    @property
    def kind(self) -> str:
        return {"C": "full", "S": "selective", "CS": "mixed"}[self.kinds if self.asked == "all" else self.asked]

    def trained_distances(self, kind: str) -> tuple[int, ...]:
        """The distances that training draws for pairs of a kind ("C", "S", or "all": of any of `kinds`)."""
        kinds = self.kinds if kind == "all" else kind
        return tuple(sorted({d for one in kinds for d in self._range(one)} - set(self.held_out)))

    @cached_property
    def _splits(self) -> dict[str, tuple[Cell, ...]]:
        new = [*self.held_out, *self.test_distances]
        trained = self.trained_distances(self.asked)
        return grid([self.window], trained, self.test_windows, new, mixed=True)

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        return dict(self._splits)

    def between(self, distance: int) -> int:
        """Tokens between the marks of a pair."""
        return distance - self.least

    def _fits(self, cell: Cell) -> bool:
        """Whether a window can hold a whole source, the pair, and a scored token."""
        distance = max(self.trained_distances("all")) if cell.distance is None else cell.distance
        return distance >= self.least and max(self.skip, self.copied + 2 + self.between(distance)) < cell.length

    def check_cell(self, cell: Cell) -> None:
        distance = max(self.trained_distances("all")) if cell.distance is None else cell.distance
        self.require(
            self._fits(cell),
            f"a delay of {distance} does not fit a window of {cell.length} with {self.copied} source tokens, "
            f"two marks and {self.skip} unscored places",
        )

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        windows = draw_windows(self, rng, count, cell)
        return windows.tokens, windows.labels

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        """By reading the marks. The first mark may close a pair opened before the window: then data follows it, and the
        look at that one token is all that an answer here reads beyond its own past. With "raw" sources a pasted mark
        can't be told from a real one there."""
        marks = {self.control(kind): kind for kind in KINDS}
        answers, seen, opened, first, pasted = {}, [], None, True, 0
        for place, token in enumerate(tokens):
            kind = marks.get(token) if place >= pasted else None
            if kind and opened is not None:
                known = kind == "C" or None not in opened  # else which even token comes first is unknown
                paste = [x for x in opened if kind == "C" or x % 2 == 0] if known else []
                answers |= {place + 1 + n: x for n, x in enumerate(paste) if x is not None}
                opened, pasted = None, place + 1 + len(paste)
            elif kind and not (first and tokens[place + 1 : place + 2] and tokens[place + 1] < self.symbols):
                opened = ([None] * self.copied + seen)[-self.copied :]
            first = first and not kind
            if token < self.symbols or self.source == "raw":
                seen.append(token)
        return {place: x for place, x in answers.items() if place < len(tokens)}

    def chance(self, cell: Cell) -> float:
        """A uniform guess among the symbols of the kind of paste, by their shares of the scored tokens."""
        kinds = self.kinds if self.asked == "all" or cell.distance is None else self.asked
        even = -(-self.symbols // 2)
        tokens = {"C": self.copied, "S": self.copied * even / self.symbols}
        right = {"C": 1 / self.symbols, "S": 1 / even}
        return sum(tokens[k] * right[k] for k in kinds) / sum(tokens[k] for k in kinds)

    def ceiling(self, cell: Cell) -> float:
        """The share of scored targets whose source stands in the window, and chance for the rest (2,000 windows). For S an
        upper bound: where the window cuts a source, which even token comes first is unknown too."""
        return 1.0 if self.unreachable == "masked" else _ceiling(self, cell)

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Measured on 1,000 windows: what followed the last one or two tokens when they last stood here, and naming the
        commonest data token so far."""
        return dict(_baselines(self, cell))


@cache
def _ceiling(task: DelayCopy, cell: Cell) -> float:
    windows = draw_windows(task, np.random.default_rng(0), 2000, cell)
    known = windows.known[windows.labels != IGNORE].mean()
    return float(known + (1 - known) * task.chance(cell))


@cache
def _baselines(task: DelayCopy, cell: Cell) -> dict[str, float]:
    tokens, labels = task.draw(np.random.default_rng(0), 1000, cell)
    return {"bag_of_words": measured_bag_of_words(tokens, labels, task.symbols)} | ngram_baselines(tokens, labels)
