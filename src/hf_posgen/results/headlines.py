"""The headline numbers of arms and runs. Numbers only, no layout.

Defined once: the mathematics is in the `posgen_extrapolation` metric, what is fed to it is here.
"""

from dataclasses import dataclass, field, replace

import pandas as pd

from ..metrics.posgen_extrapolation.headlines import FarNumbers, far_numbers, max_solved
from .aggregate import SeedMean, over_seeds
from .columns import BEYOND, SCORES, UNSEEN
from .panel import Panel, baseline
from .shared import shared_cells

MUCH_WORSE = 1.05  # times the perplexity at the trained length


@dataclass(frozen=True)
class Solved:
    """Up to which length (distance) one run solves a task; value: None where it fails at the smallest, `smallest`.
    at_end: the value is the largest one evaluated."""

    value: float | None
    smallest: float
    at_end: bool


@dataclass(frozen=True)
class FarSummary:
    """Sum, P with its nulls, and W of an arm, over its seeds. invalid: why P means nothing, or empty."""

    total: SeedMean
    ratio: SeedMean | None
    invalid: str
    overshoot: float | None
    ngram: float | None
    won: SeedMean | None


@dataclass(frozen=True)
class ArmHeadlines:
    """The headline numbers of an arm over its seeds that fit; all empty where none did.

    solved: {axis: one per seed}. means: {(split, metric): mean over its cells, then over seeds}. best: the best seed on the
    first of these splits, by the first metric. far: {metric: the numbers over distances}."""

    arm: str
    fit: bool
    solved: dict[str, list[Solved]] = field(default_factory=dict)
    means: dict[tuple[str, str], SeedMean | None] = field(default_factory=dict)
    best: float | None = None
    far: dict[str, FarSummary] = field(default_factory=dict)


def solved_up_to(run: Panel, axis: str) -> float | None:
    """Return the largest length (distance) up to which one run solves its task; None where it fails at the first."""
    if run.metrics[0] == "perplexity":
        curve = run.along(axis).groupby(axis)["perplexity"].mean()
        return max_solved(list((curve.iloc[0] / curve).items()), level=1 / MUCH_WORSE)
    tested = "test" if (run.table["split"] == "test").any() else "validation"
    cells = run.table[run.table["split"].isin([tested, BEYOND[axis]])].dropna(subset=[axis])
    lows = cells["exact_match_low"].astype(float).fillna(0.0)  # a cell without an answer is not solved
    return max_solved(list(zip(cells[axis], lows, strict=True)))


def far(run: Panel, metric: str) -> FarNumbers | None:
    """Return the numbers over distances of one run; None where fewer than two distances were evaluated."""
    cells = run.along("distance")
    if cells.dropna(subset=[metric]).loc[cells["distance"] >= 1, "distance"].nunique() < 2:
        return None
    mean = cells.groupby("distance")[[metric, "chance", "ceiling"]].mean()
    key = next((key for key in run.baseline_keys(metric) if key.startswith("ngram_2")), None)
    ngram = baseline(cells, key).groupby(cells["distance"]).mean().dropna().to_dict() if key else {}
    return far_numbers(
        {distance: None if pd.isna(value) else value for distance, value in mean[metric].items()},
        run.trained_range("distance")[1],
        mean["chance"].fillna(0.0).to_dict(),
        mean["ceiling"].to_dict(),
        ngram if len(ngram) == len(mean) else None,
    )


def shown_splits(panel: Panel) -> list[str]:
    """Return the splits of a panel that hold something unseen."""
    present = set(panel.table["split"])
    return [split for split in UNSEEN if split in present]


def shown_axes(panel: Panel) -> list[str]:
    """Return the axes along which a panel can say up to where a task is solved."""
    present = set(panel.table["split"])
    return [axis for axis in panel.axes if BEYOND[axis] in present and "exact_match_low" in panel.table]


def headlines(panel: Panel) -> list[ArmHeadlines]:
    """Return the headline numbers of every arm, in the order to show them."""
    return [_headlines(panel, arm) for arm in panel.arms]


def _headlines(panel: Panel, arm: str) -> ArmHeadlines:
    if not panel.fits[arm][0]:
        return ArmHeadlines(arm, fit=False)
    rows = panel.shared.rows
    fitted = replace(panel, table=rows[rows["arm"] == arm])
    splits, metrics, runs = shown_splits(panel), panel.metrics, list(fitted.runs().values())
    by_seed = {(split, metric): _split_means(panel, arm, split, metric) for split in splits for metric in metrics}
    best = None
    if splits and (values := by_seed[splits[0], metrics[0]]):
        best = max(values) if SCORES[metrics[0]].is_share else min(values)
    far_metrics = metrics if "distance" in panel.axes else []
    return ArmHeadlines(
        arm,
        fit=True,
        solved={axis: _solved(runs, axis) for axis in shown_axes(panel)},
        means={
            (split, metric): over_seeds(values, SCORES[metric].bounds) for (split, metric), values in by_seed.items()
        },
        best=best,
        far={metric: summary for metric in far_metrics if (summary := _far_summary(runs, metric))},
    )


def _solved(runs: list[Panel], axis: str) -> list[Solved]:
    values = [solved_up_to(run, axis) for run in runs]
    ends = [(run.trained_range(axis)[0], run.along(axis)[axis].max()) for run in runs]
    return [Solved(value, low, at_end=value == last) for value, (low, last) in zip(values, ends, strict=True)]


def _far_summary(runs: list[Panel], metric: str) -> FarSummary | None:
    numbers = [known for known in (far(run, metric) for run in runs) if known]
    columns = {
        name: [value for value in (getattr(known, name) for known in numbers) if value is not None]
        for name in ("total", "ratio", "overshoot", "ngram", "won")
    }
    total = over_seeds(columns["total"])
    if total is None:
        return None
    return FarSummary(
        total=total,
        ratio=over_seeds(columns["ratio"]),
        invalid=next((known.invalid for known in numbers if known.invalid), ""),
        overshoot=next(iter(columns["overshoot"]), None),
        ngram=next(iter(columns["ngram"]), None),
        won=over_seeds(columns["won"]),
    )


def _split_means(panel: Panel, arm: str, split: str, metric: str) -> list[float]:
    """Return a score's mean over the shared cells of a split, one value per seed of an arm that fits and has any."""
    rows = panel.shared_values(metric).rows
    rows = rows[(rows["arm"] == arm) & (rows["split"] == split)]
    return rows.groupby("seed")[metric].mean().tolist()


def over_all_seeds(panel: Panel) -> dict[tuple[str, str], SeedMean]:
    """Return {(arm, split): mean over all seeds} of the first score, for arms of which some seeds fit and some did not."""
    metric, out = panel.metrics[0], {}
    partly = [arm for arm, (fitted, seeds) in panel.fits.items() if 0 < fitted < seeds]
    rows = shared_cells(panel.table[panel.table["fit"] | panel.table["arm"].isin(partly)].dropna(subset=[metric])).rows
    for arm in partly:
        for split in UNSEEN:
            cells = rows[(rows["arm"] == arm) & (rows["split"] == split)]
            mean = over_seeds(cells.groupby("seed")[metric].mean(), SCORES[metric].bounds)
            if mean:
                out[arm, split] = mean
    return out
