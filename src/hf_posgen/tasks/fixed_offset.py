"""Study 1's task: what stood `offset` tokens back?"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .core.bag_of_words import bag_of_words, mean_bag_of_words
from .core.cells import Cell, grid
from .core.parameters import MOST_SYMBOLS, MOST_TEST_TOKENS, MOST_TOKENS, Numbers, parameter
from .core.token_task import IGNORE, TokenTask

_STUDY_1 = [17, 24, 32, 48, 128, 200, 512, 1024]  # the lengths that study 1 evaluates
_TO_256 = [17, 24, 48, 128, 256]


@dataclass(frozen=True, kw_only=True)
class FixedOffset(TokenTask):
    """Retrieval at one fixed offset (after Singh, Mishra, Raut 2026, arXiv 2607.18759; sizes *reconstructed*).

        offset 3, query "last":      x1  x2  x3 [x4] x5  x6  x7  (x4)     length 7, distance 3
                                                  ↑ <- 3 ->  ↑    └ answer slot: the label, scored on the logits at x7
        query "every":               x1  x2  x3  x4  x5  x6  x7  [PAD]
                              label   -   -   -   -  x1  x2  x3   x4     each scored on the logits one place before
        live 3:                      _   x2  _  [x4]  _   _  x7  (x4)     _ is [BLANK]

    symbols: how many data symbols, drawn uniformly. Training lengths are min_length..max_length without `held_out`, each
    equally likely; `test_lengths` (all beyond max_length) and `held_out` (between them) are evaluated and never trained.
    The only distance is `offset`: at another the question is another one, which no token asks. live: with a number, only
    the target and so many less one other keys at random places hold symbols (0: all do): the control that tells more
    length from more distractors.
    """

    name = "fixed_offset"
    paper = "2607.18759"
    configs = {
        "last_k3": {},
        "last_k1": {"offset": 1},
        "last_k7": {"offset": 7, "min_length": 8},
        "every_k3": {"query": "every"},
        "last_k3_gap": {"max_length": 30, "held_out": "11-19", "test_lengths": [31, 48, 128, 512, 1024]},
        "last_k3_live4": {"live": 4},
        "last_k3_study1": {"test_lengths": _STUDY_1},
        "last_k1_study1": {"offset": 1, "test_lengths": _STUDY_1},
        "last_k7_study1": {"offset": 7, "min_length": 8, "test_lengths": _STUDY_1},
        "last_k3_to_256": {"test_lengths": _TO_256},
        "every_k3_to_256": {"query": "every", "test_lengths": _TO_256},
        "every_k3_to_256_anchor": {"query": "every", "test_lengths": _TO_256, "bos": True},
        "every_k3_to_200": {"query": "every", "test_lengths": [17, 24, 32, 48, 128, 200]},
    }
    answer_slots = 1

    offset: int = parameter(3, "how many tokens back the answer stands", least=1, most=MOST_TOKENS)
    symbols: int = parameter(16, "how many data symbols there are", least=2, most=MOST_SYMBOLS)
    query: Literal["last", "every"] = parameter("last", "which places must answer")
    min_length: int = parameter(4, "tokens of the shortest trained sequences", least=2, most=MOST_TOKENS)
    max_length: int = parameter(16, "tokens of the longest trained sequences", least=2, most=MOST_TOKENS)
    held_out: Numbers = parameter(
        (), "lengths between min_length and max_length that are not trained", least=2, most=MOST_TOKENS
    )
    test_lengths: Numbers = parameter(
        (17, 32, 48, 128, 512, 1024),
        "longer lengths that are evaluated",
        least=1,
        most=MOST_TEST_TOKENS,
        evaluation=True,
    )
    live: int = parameter(0, "how many places hold symbols, the others blanks; 0: all", least=0, most=MOST_TOKENS)

    def check(self) -> None:
        self.require(
            1 <= self.offset < self.min_length <= self.max_length,
            f"offset {self.offset}, min_length {self.min_length}, max_length {self.max_length}: "
            "they must satisfy 1 <= offset < min_length <= max_length",
        )
        self.require(
            all(self.min_length < n < self.max_length for n in self.held_out),
            f"held_out {list(self.held_out)} must lie inside {self.min_length}..{self.max_length}",
        )
        self.require(not self.live or self.query == "last", "live goes with query 'last' only")

    @property
    def data_symbols(self) -> int:
        return self.symbols

    @property
    def control_names(self) -> tuple[str, ...]:
        return ("BLANK",) if self.live else ()

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        left_out = set(self.held_out)
        trained = [n for n in range(self.min_length, self.max_length + 1) if n not in left_out]
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
        """Draw the places where no symbol stands, (count, L)."""
        order = rng.random((count, L), dtype=np.float32)
        order[:, L - 1 - self.offset] = -1.0
        last = min(self.live, L) - 1
        return order > np.partition(order, last, axis=1)[:, last, None]

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        start, end = int(self.bos), len(tokens) - 2
        queries = [end] if self.query == "last" else range(start + self.offset, end + 1)
        return {place + 1: tokens[place - self.offset] for place in queries}

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return, exactly, what the commonest of all live keys scores, or ("every") of those up to each query."""
        if self.query == "every":
            return {"bag_of_words": mean_bag_of_words(self.offset + 1, cell.length, self.symbols)}
        return {"bag_of_words": bag_of_words(min(self.live or cell.length, cell.length), self.symbols)}
