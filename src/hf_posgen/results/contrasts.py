"""Which differences between arms the seeds carry. Numbers only, no layout."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from .columns import BEYOND, SCORES
from .panel import Panel
from .shared import shared_cells
from .statistics import holm, sign_flip, smallest_p, t_interval, underpowered


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


def untested(panel: Panel, found: list[Contrast], pairs: list[tuple[str, str]] | None = None) -> list[Untested]:
    """Return the pairs of arms of a panel that are on no axis among the contrasts that were found. pairs: as there."""
    tested = {frozenset((contrast.first, contrast.second)) for contrast in found}
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
