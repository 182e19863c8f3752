"""The plain functions behind the `evaluate` modules of this folder, for whoever has arrays at hand.

Each lives in the folder of its module, so that the folder is self-contained: it can be pushed as a Space as it is.
"""

from .posgen_accuracy.intervals import bootstrap_ratio, share, wilson
from .posgen_accuracy.scoring import IGNORE, score, score_ragged
from .posgen_extrapolation.headlines import (
    FarNumbers,
    far_numbers,
    max_solved,
    overshoot_ratio,
    ratio_beyond,
    share_beyond,
)
from .posgen_perplexity.by_position import bucket_means, nats_by_position

__all__ = [
    "IGNORE",
    "FarNumbers",
    "bootstrap_ratio",
    "bucket_means",
    "far_numbers",
    "max_solved",
    "nats_by_position",
    "overshoot_ratio",
    "ratio_beyond",
    "score",
    "score_ragged",
    "share",
    "share_beyond",
    "wilson",
]
