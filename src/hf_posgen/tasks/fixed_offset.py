"""Study 1's task: what stood `offset` tokens back?"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import poisson

from .base import IGNORE, Task
from .cells import Cell


@dataclass(frozen=True, kw_only=True)
class FixedOffset(Task):
    """Retrieval at one fixed offset (after Singh, Mishra, Raut 2026, arXiv 2607.18759; sizes reconstructed).

    offset 3, query "last":      x1  x2  x3 [x4] x5  x6  x7  (x4)     length 7, distance 3
                                              ↑ <- 3 ->  ↑    └ answer slot: the label, scored on the logits at x7
    query "every":               x1  x2  x3  x4  x5  x6  x7  [PAD]
                          label   -   -   -   -  x1  x2  x3   x4     each scored on the logits one place before

    symbols: how many data symbols, drawn uniformly. Training lengths are min_length..max_length, each equally likely;
    `test_lengths` are the longer ones to ask (all must be beyond max_length).
    """

    name = "fixed_offset"

    offset: int = 3
    symbols: int = 16
    query: str = "last"
    min_length: int = 4
    max_length: int = 16
    test_lengths: tuple[int, ...] = (17, 32, 48, 128, 512, 1024)

    def check(self) -> None:
        self.require(self.query in ("last", "every"), f"query is {self.query!r}; allowed: last, every")
        self.require(self.symbols >= 2, f"symbols is {self.symbols}; it must be at least 2")
        self.require(
            1 <= self.offset < self.min_length <= self.max_length,
            f"offset {self.offset}, min_length {self.min_length}, max_length {self.max_length}: "
            "they must satisfy 1 <= offset < min_length <= max_length",
        )

    @property
    def data_symbols(self) -> int:
        return self.symbols

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        trained = tuple(Cell(n, self.offset) for n in range(self.min_length, self.max_length + 1))
        longer = tuple(Cell(n, self.offset) for n in self.test_lengths)
        return {"train": trained, "validation": trained, "test": trained, "longer": longer}

    def slots(self) -> int:
        return super().slots() + 1

    def check_cell(self, cell: Cell) -> None:
        self.require(cell.distance == self.offset, f"distance is {cell.distance}; this task's is {self.offset}")
        self.require(cell.length > self.offset, f"offset {self.offset} is longer than a sequence of {cell.length}")

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        L, k = cell.length, self.offset
        tokens = np.empty((count, L + 1), np.int64)
        tokens[:, :L] = rng.integers(self.symbols, size=(count, L), dtype=np.int32)
        labels = np.full_like(tokens, IGNORE)
        if self.query == "last":
            tokens[:, L] = labels[:, L] = tokens[:, L - 1 - k]
        else:
            tokens[:, L] = self.pad_token_id
            labels[:, k + 1 :] = tokens[:, : L - k]
        return tokens, labels

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        """{place: answer} for one sequence, by the rule."""
        start = int(self.bos)
        end = len(tokens) - 2
        asked = [end] if self.query == "last" else range(start + self.offset, end + 1)
        return {place + 1: tokens[place - self.offset] for place in asked}

    def baselines(self, cell: Cell) -> dict[str, float]:
        return {"bag_of_words": bag_of_words(cell.length, self.symbols)} if self.query == "last" else {}


@cache
def bag_of_words(length: int, symbols: int) -> float:
    """The accuracy of naming the commonest token: E[largest count] / length for uniform symbols, exactly.

    P(no count exceeds m) is read off the product of Poisson series cut at m, given that they sum to the length.
    """
    rate, total = length / symbols, 0.0
    counts = np.arange(length + 1)
    pmf, whole = poisson.pmf(counts, rate), poisson.pmf(length, length)
    for m in range(length):
        within = np.where(counts <= m, pmf, 0.0)
        product, power, base = np.eye(1, length + 1)[0], symbols, within
        while power:
            if power & 1:
                product = np.convolve(product, base)[: length + 1]
            base, power = np.convolve(base, base)[: length + 1], power >> 1
        exceeds = 1.0 - product[length] / whole
        total += exceeds
        if m > rate and exceeds < 1e-12:
            break
    return float(total / length)
