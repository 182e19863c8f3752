"""Study 2's claims about how much is trained and how large a model is; when we call them reproduced.

As in claims.py the thresholds were written before the run that they judge.
"""

import re

import numpy as np
from scipy import stats

from ...results.statistics import holm, t_interval
from ..verdicts import ENOUGH, Verdict, combine, runs_of, summary
from .contrasts import SIGNIFICANT, arm_numbers, contrast, fit_count, larger, paired, raw_p, sized
from .streams import ARMS, StreamRun


def diversity(runs: list[StreamRun]) -> Verdict:
    panels = by_range(runs)
    parts, numbers = {}, {panel: arm_numbers(runs, panel) for panel in panels.values()}
    for arm in ARMS:
        slopes = slopes_by_seed(runs, panels, arm)
        interval = t_interval(slopes)
        parts[arm] = bool(interval[0] > 0 and interval[1] < 1) if len(slopes) >= ENOUGH and interval else None
        numbers[f"slope {arm}"] = summary(slopes)
    verdict = Verdict(
        "2.B",
        "With more trained delays the accuracy summed beyond them grows, and its ratio P to the sum within falls.",
        "slope of log W (first pasted token) on log of the number of trained delays, per seed fitted at four ranges or "
        "more: Student's interval within (0, 1)",
        *combine(parts, f"fewer than {ENOUGH} seeds fitted, with W > 0, at every range"),
        numbers,
    )
    return sized(verdict, [run for run in runs if run.panel in panels.values()])


def by_range(runs: list[StreamRun]) -> dict[int, str]:
    """Return {number of trained delays: panel} of the panels on diversity, in order."""
    panels = {run.trained[1] - run.trained[0] + 1: run.panel for run in runs if run.panel.startswith("b ")}
    return dict(sorted(panels.items()))


def slopes_by_seed(runs: list[StreamRun], panels: dict[int, str], arm: str) -> list[float]:
    """Return the slope of log W on log N_d, for every seed that fits, and wins anything, at all ranges (four or more)."""
    by_panel = [{run.seed: run for run in runs_of(runs, panel, arm)} for panel in panels.values()]
    seeds = sorted(set.intersection(*map(set, by_panel))) if len(by_panel) >= 4 else []
    slopes = []
    for seed in seeds:
        won = [by_seed[seed].far().won for by_seed in by_panel]
        if min(won) > 0:
            slopes.append(float(np.polyfit(np.log(list(panels)), np.log(won), 1)[0]))
    return slopes


def widths(runs: list[StreamRun]) -> dict[tuple[int, int | None], str]:
    """Return {(width, heads or None): panel} of the panels on model size, in order."""
    panels = {}
    for panel in {run.panel for run in runs}:
        if match := re.fullmatch(r"size width-(\d+)(?:-heads-(\d+))?", panel):
            panels[int(match[1]), int(match[2]) if match[2] else None] = panel
    return dict(sorted(panels.items(), key=str))


def size(runs: list[StreamRun]) -> Verdict:
    panels = widths(runs)
    numbers = {panel: arm_numbers(runs, panel) for panel in panels.values()}
    parts: dict[str, bool | None] = {}
    if len({width for width, _ in panels}) > 1:
        narrow, wide = (end(width for width, _ in panels) for end in (min, max))
        few = min((heads for _, heads in panels if heads), default=None)
        many = max((heads for width, heads in panels if width == wide and heads), default=None)
        small, large = panels[narrow, few], panels[wide, few]
        numbers["widest less narrowest"] = widest_less_narrowest(runs, small, large)
        parts = {f"{arm} wider is farther": larger(one) for arm, one in numbers["widest less narrowest"].items()}
        parts["only none fails to fit when narrow"], numbers["fit when narrow"] = none_fails(runs, small)
        if many != few:
            differences = paired(runs, (large, "alibi"), (panels[wide, many], "alibi"), lambda run: run.beyond)
            sooner = contrast(differences, raw_p(differences), 1)
            numbers["ALiBi, few heads less many"] = sooner
            parts[f"ALiBi breaks sooner with {many} heads than with {few}"] = larger(sooner)
    verdict = Verdict(
        "2 size",
        "Larger models generalise farther; a small one without encoding fails even in range, with RoPE and ALiBi not.",
        f"first pasted token summed beyond, given fit, widest less narrowest: paired sign-flip, Holm over arms; shares "
        f"that fit at the narrowest: Fisher's exact test, none against RoPE and ALiBi; p < {SIGNIFICANT}",
        *combine(parts, "too few seeds for the test"),
        numbers,
    )
    return sized(verdict, [run for run in runs if run.panel in panels.values()])


def widest_less_narrowest(runs: list[StreamRun], small: str, large: str) -> dict:
    """Return a contrast per arm: what is summed beyond by the wide models of a panel less by the narrow ones of another."""
    differences = {arm: paired(runs, (large, arm), (small, arm), lambda run: run.beyond) for arm in ARMS}
    adjusted = holm({arm: raw_p(values) for arm, values in differences.items()})
    return {arm: contrast(values, adjusted[arm], len(ARMS)) for arm, values in differences.items()}


def none_fails(runs: list[StreamRun], panel: str) -> tuple[bool | None, dict]:
    """Return whether fewer seeds fit without encoding than with RoPE or ALiBi, and the counts."""
    counts = {arm: fit_count(runs, panel, arm) for arm in ARMS}
    fit, every = (counts["rope"][i] + counts["alibi"][i] for i in (0, 1))
    none_fit, none_every = counts["none"]
    numbers = {arm: f"{fit} of {every}" for arm, (fit, every) in counts.items()}
    if min(none_every, every) < ENOUGH:
        return None, numbers
    table = [[none_fit, none_every - none_fit], [fit, every - fit]]
    p = float(stats.fisher_exact(table, alternative="less").pvalue)
    return p < SIGNIFICANT, numbers | {"p": p}
