"""Copying a string: unique symbols, repeated symbols, every c-th symbol."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .core.bag_of_words import bag_of_words
from .core.cells import Cell, grid, shorter
from .core.copying import ngram_baselines
from .core.parameters import Numbers
from .core.token_task import IGNORE, TokenTask


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

    Trained: n in min_count..max_count without `held_out`; asked beside: n in `test_counts`, at the windows `test_windows`
    too if padded. *Reconstructed*: sizes, and the padding.
    """

    paste = True
    control_names = ("SEP", "BLANK")

    symbols: int = 64
    layout: Literal["padded", "tight"] = "padded"
    positions: Literal["counted", "coupled"] = "counted"
    window: int = 64
    shorter_windows: Numbers | None = None
    min_count: int = 4
    max_count: int = 12
    held_out: Numbers = ()
    test_counts: Numbers | None = None
    test_windows: Numbers | None = None

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
        need(self.symbols >= 2, f"symbols is {self.symbols}; it must be at least 2")
        need(
            1 <= self.min_count <= self.max_count and self.possible(self.max_count),
            f"min_count {self.min_count}, max_count {self.max_count}, symbols {self.symbols}: they must satisfy "
            "1 <= min_count <= max_count (<= symbols where none repeats)",
        )
        need(
            all(self.min_count < n < self.max_count for n in self.held_out),
            f"held_out {list(self.held_out)} must lie inside {self.min_count}..{self.max_count}",
        )
        for given in ("test_windows", "shorter_windows"):
            need(self.layout == "padded" or not getattr(self, given), f"{given} go with layout 'padded' only")
        need(all(n < self.window for n in self.shorter_windows or ()), f"shorter_windows must be below {self.window}")

    @property
    def data_symbols(self) -> int:
        return self.symbols

    @property
    def columns(self) -> tuple[str, ...]:
        return ("input_ids", "labels", *(("positions",) if self.positions == "coupled" else ()))

    def possible(self, n: int) -> bool:
        """Whether there are strings of n symbols."""
        return True

    def picked(self, n: int) -> np.ndarray:
        """Which of the n symbols are pasted, in order."""
        return np.arange(n)

    def strings(self, rng: np.random.Generator, count: int, n: int) -> np.ndarray:
        return rng.integers(self.symbols, size=(count, n), dtype=np.int32)

    def tight(self, n: int) -> int:
        """Tokens of a sequence without padding."""
        return n + 1 + len(self.picked(n))

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        trained = [n for n in range(self.min_count, self.max_count + 1) if n not in self.held_out]
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
        """Exact: the commonest symbol of the string (each of its places is pasted, on average, equally often). Measured on
        1,000 sequences: the n-gram baselines."""
        tokens, labels, *_ = self.draw(np.random.default_rng(0), 1000, cell)
        return {"bag_of_words": self.bag(cell.distance - 1)} | ngram_baselines(tokens, labels)

    def bag(self, n: int) -> float:
        return bag_of_words(n, self.symbols)


@dataclass(frozen=True, kw_only=True)
class UniqueCopy(StringCopy):
    """Copy a string in which no symbol repeats.

        padded, window 12:   _  _  _  x1 x2 x3 x4 [SEP] (x1 x2 x3 x4)      length 12, distance 5; _ is [BLANK]
        tight:                        x1 x2 x3 x4 [SEP] (x1 x2 x3 x4)      length  9, distance 5

    Every pasted token but the first can be found by content: what followed the last one?
    """

    name = "unique_copy"

    def possible(self, n: int) -> bool:
        return n <= self.symbols

    def strings(self, rng: np.random.Generator, count: int, n: int) -> np.ndarray:
        keys = rng.random((count, self.symbols), dtype=np.float32)
        return np.argsort(keys, axis=1)[:, :n]

    def bag(self, n: int) -> float:
        return 1 / n


@dataclass(frozen=True, kw_only=True)
class RepeatCopy(StringCopy):
    """Copy a string over few symbols, which therefore repeat, once or several times.

        symbols 2, times 1:   0 1 1 0 1 [SEP] (0 1 1 0 1)                  length 11, distance 6
        symbols 2, times 2:   0 1 1 0 1 [SEP] (0 1 1 0 1 0 1 1 0 1)        length 16, distance 6

    Content doesn't tell where one is: positions must.
    """

    name = "repeat_copy"

    symbols: int = 2
    times: int = 1

    def check(self) -> None:
        self.require(self.times >= 1, f"times is {self.times}; it must be at least 1")
        super().check()

    def picked(self, n: int) -> np.ndarray:
        return np.tile(np.arange(n), self.times)


@dataclass(frozen=True, kw_only=True)
class StrideCopy(StringCopy):
    """Copy every c-th symbol of a string (after Huang et al. 2024, arXiv 2410.02140, appendix G.7).

        stride 3:   [x1] x2 x3 [x4] x5 x6 [x7] x8 [SEP] (x1 x4 x7)         length 12, distance 9

    The j-th pasted token stands (c - 1) j tokens nearer to its source than the first one.
    """

    name = "stride_copy"

    stride: int = 2

    def check(self) -> None:
        self.require(self.stride >= 1, f"stride is {self.stride}; it must be at least 1")
        super().check()

    def picked(self, n: int) -> np.ndarray:
        return np.arange(0, n, self.stride)
