"""Study 2's stream: copy what stood before a mark, when the mark comes again."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np

from ..core.bag_of_words import measured_bag_of_words
from ..core.cells import Cell, grid
from ..core.ngram import ngram_baselines
from ..core.parameters import MOST_SYMBOLS, MOST_TEST_TOKENS, MOST_TOKENS, Numbers, parameter
from ..core.token_task import IGNORE, TokenTask
from .configs import CONFIGS
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

    `test_distances` are the untrained distances to evaluate (default: up to four times d_max, as far as the window holds
    them), `test_windows` the longer windows (default: twice). Both may be written "1-14,26-120".
    """

    name = "delay_copy"
    paper = "2609.11913"
    configs = CONFIGS
    paste = True
    prompt_parameters = {"symbols": 26}
    control_names = ("R", "C", "S")
    version = 2

    kinds: Literal["C", "S", "CS"] = parameter("C", "pairs of a stream: full (C), selective (S), or both")
    asked: Literal["all", "C", "S"] = parameter("all", "pairs of an evaluated cell: those of `kinds`, or one of them")
    symbols: int = parameter(32, "how many data symbols there are", least=2, most=MOST_SYMBOLS)
    copied: int = parameter(4, "source tokens of a pair", least=1, most=4096)
    window: int = parameter(64, "tokens of the trained sequences", least=1, most=MOST_TOKENS)
    d_min: int = parameter(4, "the smallest trained delay", least=0, most=MOST_TOKENS)
    d_max: int = parameter(8, "the largest trained delay", least=0, most=MOST_TOKENS)
    s_min: int | None = parameter(None, "the smallest trained delay of S; default: d_min", least=0, most=MOST_TOKENS)
    s_max: int | None = parameter(None, "the largest trained delay of S; default: d_max", least=0, most=MOST_TOKENS)
    held_out: Numbers = parameter((), "delays inside the trained range that are not trained", least=0, most=MOST_TOKENS)
    skip: int = parameter(18, "places at a window's beginning that are not scored", least=0, most=MOST_TOKENS)
    block_trials: int = parameter(9, "trials of the binomial length of a block", least=1, most=4096)
    block_probability: float = parameter(2 / 3, "success probability of those trials", least=1e-3, most=1.0)
    gap_blocks: int = parameter(3, "the most blocks between two pairs", least=1, most=1024)
    distance_counts: Literal["between", "marks"] = parameter("between", "what a delay counts")
    filler: Literal["cut", "whole"] = parameter("cut", "how blocks fill the space between the marks of a pair")
    source: Literal["data", "raw", "fresh"] = parameter("data", "which tokens the first mark of a pair marks")
    even_source: Literal["ensured", "as_drawn"] = parameter("ensured", "whether a selective source has an even token")
    unreachable: Literal["masked", "scored"] = parameter("masked", "targets whose source precedes the window")
    cut_pastes: Literal["masked", "scored"] = parameter("masked", "pastes that begin among the places not scored")
    test_distances: Numbers | None = parameter(
        None, "unseen delays that are evaluated", least=0, most=MOST_TEST_TOKENS, evaluation=True
    )
    test_windows: Numbers | None = parameter(
        None, "longer windows that are evaluated", least=1, most=MOST_TEST_TOKENS, evaluation=True
    )

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
        """Return the distances that training draws for pairs of a kind ("C", "S", or "all": of any of `kinds`)."""
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
        """Return how many tokens stand between the marks of a pair."""
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
        """Read the marks. The first mark may close a pair opened before the window: then data follows it, and the
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

    def pasteable(self, tokens_NT: np.ndarray, cell: Cell) -> np.ndarray | None:
        """Return (N, T): which tokens could be pasted, of the kinds of pairs in a cell: data tokens, for S alone the even
        ones; None: all, with "raw" sources."""
        if self.source == "raw":
            return None
        kinds = self.kinds if self.asked == "all" or cell.distance is None else self.asked
        data = tokens_NT < self.symbols
        return data & (tokens_NT % 2 == 0) if kinds == "S" else data

    def chance(self, cell: Cell) -> float:
        """Return the accuracy of a uniform guess among the symbols of the kind of paste, by their shares of the scored
        tokens."""
        kinds = self.kinds if self.asked == "all" or cell.distance is None else self.asked
        even = -(-self.symbols // 2)
        tokens = {"C": self.copied, "S": self.copied * even / self.symbols}
        right = {"C": 1 / self.symbols, "S": 1 / even}
        return sum(tokens[k] * right[k] for k in kinds) / sum(tokens[k] for k in kinds)

    def ceiling(self, cell: Cell) -> float:
        """Return the share of scored targets whose source stands in the window, and chance for the rest (2,000 windows).
        For S an upper bound: where the window cuts a source, which even token comes first is unknown too."""
        return 1.0 if self.unreachable == "masked" else _ceiling(self, cell)

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return what the n-gram baselines score, and naming the commonest data token so far, on 1,000 windows."""
        return dict(_baselines(self, cell))


@cache
def _ceiling(task: DelayCopy, cell: Cell) -> float:
    windows = draw_windows(task, np.random.default_rng(0), 2000, cell)
    known = windows.known[windows.labels != IGNORE].mean()
    return float(known + (1 - known) * task.chance(cell))


@cache
def _baselines(task: DelayCopy, cell: Cell) -> dict[str, float]:
    tokens, labels = task.draw(np.random.default_rng(0), 1000, cell)
    bag_of_words = measured_bag_of_words(tokens, labels, task.symbols)
    return {"bag_of_words": bag_of_words} | ngram_baselines(tokens, labels, task.pasteable(tokens, cell))
