"""Recalling the values of several keys."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .core.bag_of_words import bag_of_words
from .core.cells import Cell
from .core.parameters import MOST_SYMBOLS, parameter
from .core.token_task import IGNORE
from .core.window_task import WindowTask


@dataclass(frozen=True, kw_only=True)
class MultiQueryRecall(WindowTask):
    """Recall the values of several keys (after Arora et al. 2023, arXiv 2312.04927).

        _ _ _ k1 v1 k2 v2 k3 v3 _ _ _ _ k2 (v2) k1 (v1) k3 (v3)      pairs 3, length 19, distance 10; _ is [BLANK]
              ↑ <-------- 10 ---------> ↑

    Different keys, uniform values; each key is queried once, in random order ("shuffled") or in that of the pairs ("same").
    distance: from the block of pairs to the block of queries. The i-th query, asking for the j-th pair, stands
    d + 2 (i - j) tokens after it: exactly d in the mean, and always for "same". *Reconstructed*: the blanks, which keep
    length and distance apart (the paper spreads the queries by a power law).
    """

    name = "multi_query_recall"
    paper = "2312.04927"
    prompt_parameters = {"keys": 13, "symbols": 13, "window": 40}
    configs = {
        "small_64": {},
        "pairs_in_order": {"order": "same"},
        "wide_256": {"window": 256, "pairs": 16},
    }
    control_names = ("BLANK",)

    symbols: int = parameter(32, "how many values there are", least=2, most=MOST_SYMBOLS)
    keys: int = parameter(32, "how many keys there are", least=1, most=MOST_SYMBOLS)
    pairs: int = parameter(8, "pairs of a key and a value in a sequence", least=1, most=MOST_SYMBOLS)
    order: Literal["shuffled", "same"] = parameter("shuffled", "the order of the queries beside that of the pairs")

    def check(self) -> None:
        self.require(self.pairs <= self.keys, f"pairs {self.pairs}, keys {self.keys}: they must satisfy pairs <= keys")
        super().check()

    @property
    def data_symbols(self) -> int:
        """Values come first, then keys."""
        return self.symbols + self.keys

    def possible(self, length: int) -> range:
        return range(2 * self.pairs, length - 2 * self.pairs + 1)

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        L, P, rows = cell.length, self.pairs, np.arange(count)[:, None]
        keys = self.symbols + np.argsort(rng.random((count, self.keys), dtype=np.float32), axis=1)[:, :P]
        values = rng.integers(self.symbols, size=(count, P), dtype=np.int32)
        order = np.broadcast_to(np.arange(P), (count, P))
        if self.order == "shuffled":
            order = np.argsort(rng.random((count, P), dtype=np.float32), axis=1)
        first = L - 2 * P - self.distances(rng, count, cell)[:, None] + 2 * np.arange(P)
        tokens = np.full((count, L), self.control("BLANK"), np.int64)
        tokens[rows, first], tokens[rows, first + 1] = keys, values
        tokens[:, L - 2 * P :: 2] = np.take_along_axis(keys, order, 1)
        tokens[:, L - 2 * P + 1 :: 2] = np.take_along_axis(values, order, 1)
        labels = np.full_like(tokens, IGNORE)
        labels[:, L - 2 * P + 1 :: 2] = tokens[:, L - 2 * P + 1 :: 2]
        return tokens, labels

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        known, answers = {}, {}
        for place, token in enumerate(tokens[:-1]):
            if self.symbols <= token < self.symbols + self.keys:
                if token in known:
                    answers[place + 1] = known[token]
                else:
                    known[token] = tokens[place + 1]
        return answers

    def chance(self, cell: Cell) -> float:
        return 1.0 / self.symbols

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return, exactly, what the commonest value of the pairs scores, and the 1-gram baseline, which solves this."""
        return {"bag_of_words": bag_of_words(self.pairs, self.symbols), "ngram_1": 1.0}
