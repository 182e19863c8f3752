"""Copying what stands among noise."""

from dataclasses import dataclass

import numpy as np

from .core.bag_of_words import bag_of_words
from .core.cells import Cell
from .core.ngram import ngram_baselines
from .core.parameters import MOST_TOKENS, parameter
from .core.token_task import IGNORE
from .core.window_task import WindowTask


@dataclass(frozen=True, kw_only=True)
class SelectiveCopying(WindowTask):
    """Copy the few symbols that stand among noise, in order (after Gu & Dao 2023, arXiv 2312.00752, section 4.1).

        _ _ x1 _ _ _ x2 x3 _ _ _ [SEP] (x1 x2 x3)       copied 3, length 15, distance 10; _ is [NOISE]
            ↑ <------- 10 -----------> ↑

    distance: from the first symbol to the first answer; the others stand at random places between. Later answers are
    nearer to, or as far from, their sources. The paper's size is configuration `paper_4096`, where every first place
    is trained. *Reconstructed*: the separator.
    """

    name = "selective_copying"
    paper = "2312.00752"
    configs = {
        "small_64": {},
        "paper_4096": {"window": 4096, "copied": 16, "d_max": 4080, "test_windows": [8192]},
    }
    paste = True
    control_names = ("NOISE", "SEP")

    copied: int = parameter(4, "symbols that are copied", least=1, most=MOST_TOKENS)

    def possible(self, length: int) -> range:
        return range(self.copied + 1, length - self.copied + 1)

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        L, m, rows = cell.length, self.copied, np.arange(count)[:, None]
        d = self.distances(rng, count, cell)
        first = L - m - d
        free = int(d.max()) - 2  # places between the first symbol and the separator, of the farthest
        order = rng.random((count, free), dtype=np.float32)
        order[np.arange(free) >= (d - 2)[:, None]] = 2.0
        others = np.argpartition(order, m - 2, axis=1)[:, : m - 1] if m > 1 else np.zeros((count, 0), np.int64)
        places = first[:, None] + np.hstack([np.zeros((count, 1), np.int64), 1 + np.sort(others, axis=1)])
        values = rng.integers(self.symbols, size=(count, m), dtype=np.int32)
        tokens = np.full((count, L), self.control("NOISE"), np.int64)
        tokens[rows, places] = values
        tokens[:, L - m - 1] = self.control("SEP")
        tokens[:, L - m :] = values
        labels = np.full_like(tokens, IGNORE)
        labels[:, L - m :] = values
        return tokens, labels

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        end = tokens.index(self.control("SEP"))
        return {end + 1 + n: x for n, x in enumerate(token for token in tokens[:end] if token < self.symbols)}

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return, exactly, what the commonest of the copied symbols scores, and what the n-gram baselines score on 1,000
        sequences."""
        tokens, labels = self.draw(np.random.default_rng(0), 1000, cell)
        ngrams = ngram_baselines(tokens, labels, tokens < self.symbols)
        return {"bag_of_words": bag_of_words(self.copied, self.symbols)} | ngrams
