"""The headline numbers of arms and runs, and which differences between arms the seeds carry. Numbers only, no layout.

Defined once: the mathematics is in the `posgen_extrapolation` metric, what is fed to it is here.
"""

from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import pandas as pd

from ..metrics.posgen_extrapolation.headlines import FarNumbers, far_numbers, max_solved
from .aggregate import SeedMean, over_seeds
from .columns import BEYOND, SCORES, UNSEEN
from .panel import Panel, baseline
from .shared import shared_cells
from .statistics import holm, sign_flip, smallest_p, t_interval, underpowered

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


@dataclass(frozen=True)
class Contrast:
    """The difference between two arms in their mean over the unseen cells of one axis, over `pairs` seeds.

    cells: how many both arms have in each of these seeds, which are those compared; left_out: the names of the others.
    interval: Student's t of the paired difference. error: the standard error of holm_p where it is a Monte Carlo estimate,
    or 0. smallest_p: the smallest that so many pairs can reach, corrected too."""

    axis: str
    first: str
    second: str
    pairs: int
    difference: float
    interval: tuple[float, float] | None
    cells: int
    left_out: tuple[str, ...]
    holm_p: float
    error: float
    smallest_p: float
    verdict: str

    @property
    def name(self) -> str:
        return f"{BEYOND[self.axis]}: {self.first} - {self.second}"


@dataclass(frozen=True)
class Untested:
    """Two arms whose difference can't be tested, and why not."""

    first: str
    second: str
    why: str


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
    rows = panel.shared.rows
    fitted = replace(panel, table=rows[rows["arm"] == arm])
    if not panel.fits[arm][0]:
        return ArmHeadlines(arm, fit=False)
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


def contrasts(panel: Panel, pairs: list[tuple[str, str]] | None = None) -> list[Contrast]:
    """Return the differences between pairs of arms, tested by the paired sign-flip test over the seeds where both fit and
    over the cells that both have, with Holm's correction over all of them.

    The verdict names a winner only where the test is significant: of accuracies the higher, of perplexities the lower.
    pairs: those declared beforehand (default: all)."""
    metric = panel.metrics[0]
    differences = {}
    for axis in panel.axes:
        for first, second in _pairs(panel, pairs):
            difference = _paired_difference(panel, axis, metric, first, second)
            if difference:
                differences[axis, first, second] = difference
    raw = {key: sign_flip(difference.values) for key, difference in differences.items()}
    adjusted = holm({key: test.p for key, test in raw.items()})
    out = []
    for key, difference in differences.items():
        (axis, first, second), values, p = key, difference.values, adjusted[key]
        smallest = min(1.0, len(differences) * smallest_p(len(values)))
        verdict = _verdict(first, second, values, p, len(differences), metric)
        out.append(
            Contrast(
                axis,
                first,
                second,
                pairs=len(values),
                difference=float(values.mean()),
                interval=t_interval(values),
                cells=difference.cells,
                left_out=difference.left_out,
                holm_p=p,
                error=raw[key].error * p / raw[key].p,
                smallest_p=smallest,
                verdict=verdict,
            )
        )
    return out


def untested(panel: Panel, pairs: list[tuple[str, str]] | None = None) -> list[Untested]:
    """Return the pairs of arms of a panel that `contrasts` can't test on any axis. pairs: as there."""
    tested = {frozenset((contrast.first, contrast.second)) for contrast in contrasts(panel, pairs)}
    return [
        Untested(first, second, _why_untested(panel, first, second))
        for first, second in _pairs(panel, pairs)
        if frozenset((first, second)) not in tested
    ]


def _pairs(panel: Panel, pairs: list[tuple[str, str]] | None) -> list[tuple[str, str]]:
    if pairs is None:
        return list(combinations(panel.arms, 2))
    return [pair for pair in pairs if all(arm in panel.arms for arm in pair)]


def _why_untested(panel: Panel, first: str, second: str) -> str:
    unfit = [arm for arm in (first, second) if not panel.fits[arm][0]]
    if unfit:
        return f"{' and '.join(unfit)} did not fit"
    if not panel.axes:
        return "nothing was evaluated beyond the trained range"
    seeds = [set(panel.arm(arm, fit=True).table["seed"]) for arm in (first, second)]
    if not seeds[0] & seeds[1]:
        return "there is no seed where both fit"
    return "both have no unseen cell in common"


@dataclass(frozen=True)
class _PairedDifference:
    values: np.ndarray
    cells: int
    left_out: tuple[str, ...]


def _paired_difference(panel: Panel, axis: str, metric: str, first: str, second: str) -> _PairedDifference | None:
    """Return, by seed, the difference of two arms' means over the unseen cells that both have; None where there is none."""
    table = panel.table
    unseen = table[table["fit"] & (table["split"] == BEYOND[axis])].dropna(subset=[metric])
    rows = [unseen[unseen["arm"] == arm] for arm in (first, second)]
    seeds = set(rows[0]["seed"]) & set(rows[1]["seed"])
    shared = shared_cells(pd.concat(rows).pipe(lambda both: both[both["seed"].isin(seeds)]))
    if shared.rows.empty:
        return None
    means = shared.rows.groupby(["arm", "seed"])[metric].mean()
    cells = len(shared.rows.drop_duplicates(["length", "distance"]))
    return _PairedDifference((means[first] - means[second]).to_numpy(), cells, tuple(shared.left_out))


def _verdict(first: str, second: str, differences: np.ndarray, p: float, tests: int, metric: str) -> str:
    if underpowered(len(differences), tests):
        pairs, contrasts = _count(len(differences), "pair"), _count(tests, "contrast")
        return f"underpowered: {pairs} can't reach p < .05 in {contrasts}"
    if p >= 0.05:
        return "no significant difference"
    above, below = (first, second) if differences.mean() > 0 else (second, first)
    return f"{above} higher" if SCORES[metric].is_share else f"{below} lower"


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
