"""Induction: what followed the mark the last time?"""

from dataclasses import dataclass

import numpy as np

from .core.bag_of_words import bag_of_words
from .core.cells import Cell
from .core.token_task import IGNORE
from .core.window_task import WindowTask


@dataclass(frozen=True, kw_only=True)
class Induction(WindowTask):
    """What followed the mark the last time? (after Gu & Dao 2023, arXiv 2312.00752, appendix E)

        x x x [M] a x x x x [M] (a)          length 10, distance 5
                  ↑ <- 5 ->  ↑   └ answer slot, scored on the logits at the second mark

    [M] stands twice, once followed by the answer and once at the end; x are uniform symbols. distance: from the end back
    to the answer. Unlike the paper, whose mark stands anywhere at every length, each cell holds one distance; the mean
    over the distances of a length is the paper's figure.
    """

    name = "induction"
    paper = "2312.00752"
    configs = {
        "small_64": {},
        "paper_256": {"window": 256, "shorter_windows": [], "d_max": 254, "test_windows": [512, 1024, 2048]},
    }
    control_names = ("M",)
    answer_slots = 1

    def possible(self, length: int) -> range:
        return range(1, length - 1)

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        L, rows = cell.length, np.arange(count)
        tokens = np.empty((count, L + 1), np.int64)
        tokens[:, :L] = rng.integers(self.symbols, size=(count, L), dtype=np.int32)
        answer = L - 1 - self.distances(rng, count, cell)
        tokens[rows, answer - 1] = tokens[:, L - 1] = self.control("M")
        labels = np.full_like(tokens, IGNORE)
        tokens[:, L] = labels[:, L] = tokens[rows, answer]
        return tokens, labels

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        return {len(tokens) - 1: tokens[tokens.index(self.control("M")) + 1]}

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return, exactly, what the commonest of the L - 2 symbols scores, and the 1-gram baseline, which solves this."""
        return {"bag_of_words": bag_of_words(cell.length - 2, self.symbols), "ngram_1": 1.0}
