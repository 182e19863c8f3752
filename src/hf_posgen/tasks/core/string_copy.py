"""What the tasks that copy a string share."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .bag_of_words import bag_of_words
from .cells import Cell, grid, shorter
from .ngram import ngram_baselines
from .parameters import MOST_SYMBOLS, MOST_TEST_TOKENS, MOST_TOKENS, Numbers, parameter
from .token_task import IGNORE, TokenTask

# Huang et al. (2410.02140): trained up to 50, tested from 101 to 150.
TIGHT_1_50 = {"layout": "tight", "min_count": 1, "max_count": 50, "test_counts": "101,111,121,131,141,150"}


@dataclass(frozen=True, kw_only=True)
class StringCopy(TokenTask):
    """What the string-copying tasks share.

    A string of n symbols, [SEP], and what is pasted of it. The length of a sequence counts all of it, the paste too; the
    first pasted token stands n + 1 tokens after its source: the distance. layout: in the classic, "tight" one every n has
    its own length, so that an unseen n is an unseen distance *and* an unseen length (split `both`). "padded" puts [BLANK]
    in front, up to `window` tokens whatever n is, or one of the `shorter_windows` (by default three quarters and seven
    eighths of it, where they hold max_count), and the two axes are free of each other.

    positions: "counted" from the first token on, or "coupled": a pasted token stands where its source does, and all else at
    0, in a column of its own that the model takes (position coupling, Cho et al. 2024, arXiv 2405.20671; for copying
    *reconstructed*). What is to be pasted next is then one step on, whatever n is.

        coupled, tight:               x1 x2 x3 x4 [SEP] (x1 x2 x3 x4)
        positions                      1  2  3  4   0     1  2  3  4

    Trained: n in min_count..max_count without `held_out`; evaluated beside: n in `test_counts`, at the windows
    `test_windows` too if padded. *Reconstructed*: sizes, and the padding.
    """

    paste = True
    prompt_parameters = {"layout": "tight"}
    control_names = ("SEP", "BLANK")

    symbols: int = parameter(64, "how many data symbols there are", least=2, most=MOST_SYMBOLS)
    layout: Literal["padded", "tight"] = parameter("padded", "whether blanks fill a sequence up to its window")
    positions: Literal["counted", "coupled"] = parameter("counted", "the positions that the model is given")
    window: int = parameter(64, "tokens of the longest trained sequences (padded)", least=1, most=MOST_TOKENS)
    shorter_windows: Numbers | None = parameter(
        None, "tokens of the shorter trained sequences (padded)", least=1, most=MOST_TOKENS
    )
    min_count: int = parameter(4, "symbols of the shortest trained strings", least=1, most=MOST_TOKENS)
    max_count: int = parameter(12, "symbols of the longest trained strings", least=1, most=MOST_TOKENS)
    held_out: Numbers = parameter(
        (), "numbers of symbols between min_count and max_count that are not trained", least=1, most=MOST_TOKENS
    )
    test_counts: Numbers | None = parameter(
        None, "unseen numbers of symbols that are evaluated", least=1, most=MOST_TEST_TOKENS, evaluation=True
    )
    test_windows: Numbers | None = parameter(
        None, "unseen lengths that are evaluated (padded)", least=1, most=MOST_TEST_TOKENS, evaluation=True
    )

    def derived(self) -> dict:
        low, high = self.min_count, self.max_count
        new = [n for n in (*range(1, low), *range(high + 1, 2 * high + 1), 3 * high, 4 * high) if self.possible(n)]
        if self.layout == "tight":
            return {"test_counts": tuple(n for n in new if n > high), "test_windows": (), "shorter_windows": ()}
        return {
            "shorter_windows": tuple(n for n in shorter(self.window) if self.tight(high) <= n),
            "test_counts": tuple(n for n in new if self.tight(n) <= self.window),
            "test_windows": (2 * self.window,),
        }

    def check(self) -> None:
        need = self.require
        need(
            1 <= self.min_count <= self.max_count and self.possible(self.max_count),
            f"min_count {self.min_count}, max_count {self.max_count}, symbols {self.symbols}: they must satisfy "
            "1 <= min_count <= max_count (<= symbols where none repeats)",
        )
        n, room = self.max_count, self.window if self.layout == "padded" else MOST_TOKENS
        need(
            self.tight(n) <= room, f"a string of {n} and its copy fill {self.tight(n)} tokens, the sequence has {room}"
        )
        need(
            all(self.min_count < n < self.max_count for n in self.held_out),
            f"held_out {list(self.held_out)} must lie inside {self.min_count}..{self.max_count}",
        )
        for key in ("test_windows", "shorter_windows"):
            need(self.layout == "padded" or not getattr(self, key), f"{key} go with layout 'padded' only")
        need(all(n < self.window for n in self.shorter_windows or ()), f"shorter_windows must be below {self.window}")

    @property
    def data_symbols(self) -> int:
        return self.symbols

    @property
    def columns(self) -> tuple[str, ...]:
        return ("input_ids", "labels", *(("positions",) if self.positions == "coupled" else ()))

    def possible(self, n: int) -> bool:
        """Return whether there are strings of n symbols."""
        return True

    def picked(self, n: int) -> np.ndarray:
        """Return which of the n symbols are pasted, in order."""
        return np.arange(n)

    def strings(self, rng: np.random.Generator, count: int, n: int) -> np.ndarray:
        """Draw (count, n) symbols."""
        return rng.integers(self.symbols, size=(count, n), dtype=np.int32)

    def tight(self, n: int) -> int:
        """Return how many tokens a sequence has without padding."""
        return n + 1 + len(self.picked(n))

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        left_out = set(self.held_out)
        trained = [n for n in range(self.min_count, self.max_count + 1) if n not in left_out]
        new = sorted({*self.held_out, *self.test_counts})
        self.require(
            self.layout == "padded" or not new or new[0] > trained[0],
            f"test_counts begin with {new[:1]}: layout 'tight' has no split for less than {trained[0]}",
        )
        if self.layout == "padded":
            windows = [*self.shorter_windows, self.window]
            return grid(windows, [n + 1 for n in trained], self.test_windows, [n + 1 for n in new])
        cells = {n: Cell(self.tight(n), n + 1) for n in (*trained, *new)}
        test = tuple(cells[n] for n in trained)
        inside = tuple(cells[n] for n in new if n < trained[-1])
        beyond = tuple(cells[n] for n in new if n >= trained[-1])
        return {"train": test, "validation": test, "test": test, "between": inside, "both": beyond}

    def check_cell(self, cell: Cell) -> None:
        n = (cell.distance or 0) - 1
        self.require(n >= 1 and self.possible(n), f"distance is {cell.distance}: no such string of {n} symbols")
        fits = self.tight(n) == cell.length if self.layout == "tight" else self.tight(n) <= cell.length
        self.require(fits, f"a string of {n} and its copy fill {self.tight(n)} tokens, the sequence has {cell.length}")

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, ...]:
        n = cell.distance - 1
        front = cell.length - self.tight(n)
        tokens = np.empty((count, cell.length), np.int64)
        tokens[:, :front] = self.control("BLANK")
        tokens[:, front : front + n] = string = self.strings(rng, count, n)
        tokens[:, front + n] = self.control("SEP")
        tokens[:, front + n + 1 :] = string[:, self.picked(n)]
        labels = np.full_like(tokens, IGNORE)
        labels[:, front + n + 1 :] = tokens[:, front + n + 1 :]
        if self.positions == "counted":
            return tokens, labels
        places = [*[0] * front, *range(1, n + 1), 0, *(1 + self.picked(n))]
        return tokens, labels, np.tile(np.array(places), (count, 1))

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        end = tokens.index(self.control("SEP"))
        string = [token for token in tokens[:end] if token < self.symbols]
        return {end + 1 + j: string[i] for j, i in enumerate(self.picked(len(string)).tolist())}

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return, exactly, what the commonest symbol of the string scores (each of its places is pasted, on average,
        equally often), and what the n-gram baselines score on 1,000 sequences."""
        tokens, labels, *_ = self.draw(np.random.default_rng(0), 1000, cell)
        return {"bag_of_words": self.bag(cell.distance - 1)} | ngram_baselines(tokens, labels, tokens < self.symbols)

    def bag(self, n: int) -> float:
        """Return how often the commonest of n symbols is right."""
        return bag_of_words(n, self.symbols)
