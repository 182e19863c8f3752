"""Copying a string in which no symbol repeats."""

from dataclasses import dataclass

import numpy as np

from .core.string_copy import TIGHT_1_50, StringCopy


@dataclass(frozen=True, kw_only=True)
class UniqueCopy(StringCopy):
    """Copy a string in which no symbol repeats.

        padded, window 12:   _  _  _  x1 x2 x3 x4 [SEP] (x1 x2 x3 x4)      length 12, distance 5; _ is [BLANK]
        tight:                        x1 x2 x3 x4 [SEP] (x1 x2 x3 x4)      length  9, distance 5

    Every pasted token but the first can be found by content: what followed the last one?
    """

    name = "unique_copy"
    paper = "2410.02140"
    prompt_parameters = {"layout": "tight", "symbols": 26}
    configs = {
        "padded_4_12": {},
        "tight_4_12": {"layout": "tight"},
        "tight_1_50": TIGHT_1_50 | {"symbols": 160},
        "tight_4_12_coupled": {"layout": "tight", "positions": "coupled"},
    }

    def possible(self, n: int) -> bool:
        return n <= self.symbols

    def strings(self, rng: np.random.Generator, count: int, n: int) -> np.ndarray:
        keys = rng.random((count, self.symbols), dtype=np.float32)
        return np.argsort(keys, axis=1)[:, :n]

    def bag(self, n: int) -> float:
        return 1 / n
