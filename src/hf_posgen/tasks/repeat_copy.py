"""Copying a string over few symbols."""

from dataclasses import dataclass

import numpy as np

from .core.parameters import MOST_SYMBOLS, parameter
from .core.string_copy import TIGHT_1_50, StringCopy


@dataclass(frozen=True, kw_only=True)
class RepeatCopy(StringCopy):
    """Copy a string over few symbols, which therefore repeat, once or several times.

        symbols 2, times 1:   0 1 1 0 1 [SEP] (0 1 1 0 1)                  length 11, distance 6
        symbols 2, times 2:   0 1 1 0 1 [SEP] (0 1 1 0 1 0 1 1 0 1)        length 16, distance 6

    Content doesn't tell where one is: positions must.
    """

    name = "repeat_copy"
    paper = "2410.02140"
    configs = {
        "padded_4_12": {},
        "tight_4_12": {"layout": "tight"},
        "twice_4_12": {"times": 2},
        "tight_1_50": TIGHT_1_50,
        "tight_4_12_coupled": {"layout": "tight", "positions": "coupled"},
    }

    symbols: int = parameter(2, "how many data symbols there are", least=2, most=MOST_SYMBOLS)
    times: int = parameter(1, "how often the string is pasted", least=1, most=1024)

    def picked(self, n: int) -> np.ndarray:
        return np.tile(np.arange(n), self.times)
