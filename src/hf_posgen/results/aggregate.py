"""Means of scores with their intervals: over the cells of one run, and over the seeds of an arm."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from .columns import SCORES
from .statistics import t_interval

FEWEST = 3  # seeds; below, each is shown for itself


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds. low, high: Student's t interval at 95 %; None below three seeds. values: each seed's."""

    values: tuple[float, ...]
    mean: float
    low: float | None
    high: float | None

    @property
    def n(self) -> int:
        return len(self.values)


def over_seeds(values: Iterable[float], bounds: tuple[float, float] = (-math.inf, math.inf)) -> SeedMean | None:
    """Return the mean of one value per seed, its interval cut at `bounds`; None where there is no value."""
    known = tuple(float(value) for value in values)
    if not known:
        return None
    low, high = t_interval(known) or (None, None)
    if low is not None and high is not None:
        low, high = max(bounds[0], low), min(bounds[1], high)
    return SeedMean(known, sum(known) / len(known), low, high)


def mean_by(rows: pd.DataFrame, by: list[str], metric: str) -> pd.DataFrame:
    """Return `by` → mean, low, high, n over the rows, one per seed: `over_seeds` of every group at once."""
    out = rows.groupby(by, dropna=False)[metric].agg(mean="mean", spread="sem", n="count").reset_index()
    lowest, highest = SCORES[metric].bounds
    reach = np.where(out["n"] >= FEWEST, stats.t.ppf(0.975, np.maximum(out["n"] - 1, 1)) * out["spread"], np.nan)
    out["low"] = np.maximum(out["mean"] - reach, lowest)
    out["high"] = np.minimum(out["mean"] + reach, highest)
    return out.drop(columns="spread")


@dataclass(frozen=True)
class CellMean:
    """A score's mean over the cells of one run with its interval at 95 %, and the worst cell's."""

    mean: float
    low: float
    high: float
    worst: float


def over_cells(rows: list[dict], metric: str) -> CellMean:
    """Return the mean of a score over rows that all have it.

    The interval of a mean of independent cells comes from those of the cells by the method of variance estimates recovery
    (Zou, Huang, Zhang 2009, "A note on confidence interval estimation for a linear function of binomial proportions")."""
    values = [row[metric] for row in rows]
    mean = sum(values) / len(rows)
    below = math.hypot(*(row[metric] - row[f"{metric}_low"] for row in rows)) / len(rows)
    above = math.hypot(*(row[f"{metric}_high"] - row[metric] for row in rows)) / len(rows)
    if not SCORES[metric].is_share:
        return CellMean(mean, mean - below, mean + above, max(values))
    return CellMean(mean, max(0.0, mean - below), min(1.0, mean + above), min(values))
