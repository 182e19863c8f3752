"""Copying every c-th symbol of a string."""

from dataclasses import dataclass

import numpy as np

from .core.parameters import MOST_TOKENS, parameter
from .core.string_copy import TIGHT_1_50, StringCopy


@dataclass(frozen=True, kw_only=True)
class StrideCopy(StringCopy):
    """Copy every c-th symbol of a string (after Huang et al. 2024, arXiv 2410.02140, appendix G.7).

        stride 3:   [x1] x2 x3 [x4] x5 x6 [x7] x8 [SEP] (x1 x4 x7)         length 12, distance 9

    The j-th pasted token stands (c - 1) j tokens nearer to its source than the first one.
    """

    name = "stride_copy"
    paper = "2410.02140"
    prompt_parameters = {"layout": "tight", "symbols": 26}
    configs = {
        "padded_stride_2": {},
        **{f"tight_1_50_stride_{c}": TIGHT_1_50 | {"stride": c} for c in (1, 2, 3)},
    }

    stride: int = parameter(2, "paste every n-th symbol, from the first on", least=1, most=MOST_TOKENS)

    def picked(self, n: int) -> np.ndarray:
        return np.arange(0, n, self.stride)
