"""Study 1's task: what stood `offset` tokens back?"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .core.bag_of_words import bag_of_words, mean_bag_of_words
from .core.cells import Cell, grid
from .core.parameters import Numbers
from .core.token_task import IGNORE, TokenTask


@dataclass(frozen=True, kw_only=True)
class FixedOffset(TokenTask):
    """Retrieval at one fixed offset (after Singh, Mishra, Raut 2026, arXiv 2607.18759; sizes *reconstructed*).

        offset 3, query "last":      x1  x2  x3 [x4] x5  x6  x7  (x4)     length 7, distance 3
                                                  ↑ <- 3 ->  ↑    └ answer slot: the label, scored on the logits at x7
        query "every":               x1  x2  x3  x4  x5  x6  x7  [PAD]
                              label   -   -   -   -  x1  x2  x3   x4     each scored on the logits one place before
        live 3:                      _   x2  _  [x4]  _   _  x7  (x4)     _ is [BLANK]

    symbols: how many data symbols, drawn uniformly. Training lengths are min_length..max_length without `held_out`, each
    equally likely; `test_lengths` (all beyond max_length) and `held_out` (between them) are asked and never trained. The
    only distance is `offset`: at another the question is another one, which no token asks.
    live: with a number, only the target and so many less one other keys at random places hold symbols (0: all do): the
    control that tells more length from more distractors.
    """

    name = "fixed_offset"
    answer_slots = 1

    offset: int = 3
    symbols: int = 16
    query: Literal["last", "every"] = "last"
    min_length: int = 4
    max_length: int = 16
    held_out: Numbers = ()
    test_lengths: Numbers = (17, 32, 48, 128, 512, 1024)
    live: int = 0

    def check(self) -> None:
        self.require(self.symbols >= 2, f"symbols is {self.symbols}; it must be at least 2")
        self.require(
            1 <= self.offset < self.min_length <= self.max_length,
            f"offset {self.offset}, min_length {self.min_length}, max_length {self.max_length}: "
            "they must satisfy 1 <= offset < min_length <= max_length",
        )
        self.require(
            all(self.min_length < n < self.max_length for n in self.held_out),
            f"held_out {list(self.held_out)} must lie inside {self.min_length}..{self.max_length}",
        )
        self.require(self.live >= 0, f"live is {self.live}; it must be 0 (all keys) or more")
        self.require(not self.live or self.query == "last", "live goes with query 'last' only")

    @property
    def data_symbols(self) -> int:
        return self.symbols

    @property
    def control_names(self) -> tuple[str, ...]:
        return ("BLANK",) if self.live else ()

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        trained = [n for n in range(self.min_length, self.max_length + 1) if n not in self.held_out]
        return grid(trained, [self.offset], [*self.held_out, *self.test_lengths])

    def check_cell(self, cell: Cell) -> None:
        self.require(cell.distance == self.offset, f"distance is {cell.distance}; this task's is {self.offset}")
        self.require(cell.length > self.offset, f"offset {self.offset} is longer than a sequence of {cell.length}")

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        L, k = cell.length, self.offset
        tokens = np.empty((count, L + 1), np.int64)
        tokens[:, :L] = rng.integers(self.symbols, size=(count, L), dtype=np.int32)
        labels = np.full_like(tokens, IGNORE)
        if self.query == "every":
            tokens[:, L] = self.pad_token_id
            labels[:, k + 1 :] = tokens[:, : L - k]
            return tokens, labels
        tokens[:, L] = labels[:, L] = tokens[:, L - 1 - k]
        if self.live:
            tokens[:, :L][self._dead(rng, count, L)] = self.control("BLANK")
        return tokens, labels

    def _dead(self, rng: np.random.Generator, count: int, L: int) -> np.ndarray:
        """(count, L): True where no symbol stands."""
        order = rng.random((count, L), dtype=np.float32)
        order[:, L - 1 - self.offset] = -1.0
        last = min(self.live, L) - 1
        return order > np.partition(order, last, axis=1)[:, last, None]

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        start, end = int(self.bos), len(tokens) - 2
        asked = [end] if self.query == "last" else range(start + self.offset, end + 1)
        return {place + 1: tokens[place - self.offset] for place in asked}

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Exact: the commonest of all live keys, or ("every") of those up to each query."""
        if self.query == "every":
            return {"bag_of_words": mean_bag_of_words(self.offset + 1, cell.length, self.symbols)}
        return {"bag_of_words": bag_of_words(min(self.live or cell.length, cell.length), self.symbols)}
