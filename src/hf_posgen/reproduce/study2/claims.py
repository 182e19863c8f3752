"""The claims of study 2 (Nevermann & Gros 2026, arXiv 2609.11913) and when we call each reproduced.

These thresholds were written before the run that they judge; change them only with a reason in the history. Only runs that
fit (mean over the trained delays >= .95) are judged, paired by seed. A test that could not reach p < .05 with the pairs
there are is not judged. The size of the models stands in every verdict: the paper's have 8 layers of width 512, and a
small model that does not show a claim refutes nothing, so there "not" reads "not judged".

"First" is the first pasted token, which must resolve the delay; content alone can find the rest.
"""

import re

import numpy as np
from scipy import stats

from ...results.statistics import clopper_pearson, holm, t_interval
from ..verdicts import ENOUGH, Verdict, combine, of, part, summary
from .streams import ARMS, FIRST, TOKENS, StreamRun, contrast, paired, raw_p, sized
from .transfer import transfer, transfer_separated

ORDER = (("none", "rope"), ("alibi", "rope"), ("none", "alibi"))  # the contrasts of a task, corrected together
SIGNIFICANT = 0.05
SPREAD = 0.10  # range of the sum over seeds, of its mean
ABOVE_FLOOR = 0.05  # first pasted token at twice the longest trained delay, its interval's low end
UNTESTED = "too few fitted pairs of seeds for the test"


def judge(runs: list[StreamRun]) -> list[Verdict]:
    """Every claim."""
    claims = (
        rope_worst,
        none_over_alibi,
        diversity,
        transfer,
        transfer_separated,
        size,
        seeds_minor,
        twice_as_far,
    )
    return [claim(runs) for claim in claims]


def fitted(runs: list[StreamRun], panel: str, arms=ARMS) -> dict:
    """Per arm: fitted of all seeds with the exact interval, and over the fitted ones the sums, P with its nulls, and W."""
    out = {}
    for arm in arms:
        every, mine = of(runs, panel, arm, fitted=False), of(runs, panel, arm)
        if not every:
            continue
        low, high = clopper_pearson(len(mine), len(every))
        line = {
            "fitted": len(mine),
            "seeds": len(every),
            "share_at_least": round(low, 2),
            "share_at_most": round(high, 2),
        }
        line |= {"parameters": every[0].parameters, "first_summed_beyond": summary(run.beyond for run in mine)}
        for metric in (FIRST, TOKENS):
            numbers = [run.far(metric) for run in mine]
            line[metric] = {
                "sum": summary(one.total for one in numbers),
                "P": summary(one.ratio for one in numbers),
                "P_invalid": next((one.invalid for one in numbers if one.invalid), ""),
                "P_overshooting_by_5": summary(one.overshoot for one in numbers)["mean"],
                "P_of_2gram_baseline": summary(one.ngram for one in numbers)["mean"],
                "W": summary(one.won for one in numbers),
            }
        out[arm] = line
    return out


def in_order(runs: list[StreamRun], panel: str) -> dict:
    """The contrasts of ORDER on the first pasted token, summed beyond the trained delays; p by Holm over the three."""
    found = {f"{a} > {b}": paired(runs, (panel, a), (panel, b), lambda run: run.beyond) for a, b in ORDER}
    adjusted = holm({name: raw_p(d) for name, d in found.items()})
    return {name: contrast(d, adjusted[name], len(ORDER)) for name, d in found.items()}


def larger(found: dict) -> bool | None:
    """Whether a contrast carries its claim; None where no outcome could have."""
    return None if found["underpowered"] else bool(found["difference"] > 0 and found["p"] < SIGNIFICANT)


TASKS = {"C": "a full", "S": "a selective"}
HOW_ORDERED = (
    f"first pasted token, summed over the delays beyond the trained ones: exact paired sign-flip test, Holm over the "
    f"contrasts {', '.join(f'{a} - {b}' for a, b in ORDER)} of a task, p < {SIGNIFICANT}"
)


def rope_worst(runs: list[StreamRun]) -> Verdict:
    mine = [run for run in runs if run.panel in TASKS.values()]
    orders = {task: in_order(runs, panel) for task, panel in TASKS.items()}
    parts = {
        f"{task}: {name}": larger(orders[task][name]) for task in TASKS for name in ("none > rope", "alibi > rope")
    }
    numbers = {task: orders[task] | {"arms": fitted(runs, panel)} for task, panel in TASKS.items()}
    said = "Beyond the trained delays RoPE is worst, on full (C) and selective (S) copies."
    verdict = Verdict(
        "2.A", said, f"{HOW_ORDERED}; both contrasts with RoPE, C and S", *combine(parts, UNTESTED), numbers
    )
    return sized(verdict, mine)


def none_over_alibi(runs: list[StreamRun]) -> Verdict:
    mine = [run for run in runs if run.panel in TASKS.values()]
    orders = {task: in_order(runs, panel) for task, panel in TASKS.items()}
    parts = {f"{task}: none > alibi": larger(orders[task]["none > alibi"]) for task in TASKS}
    said = "Beyond the trained delays a model without encoding does better than ALiBi, on C and S."
    numbers = {task: orders[task]["none > alibi"] for task in TASKS}
    verdict = Verdict("2.A′", said, f"{HOW_ORDERED}; C and S", *combine(parts, UNTESTED), numbers)
    return sized(verdict, mine, needs_paper_size=True)


def diversity(runs: list[StreamRun]) -> Verdict:
    panels = by_range(runs)
    mine = [run for run in runs if run.panel in panels.values()]
    parts, numbers = {}, {panel: fitted(runs, panel) for panel in panels.values()}
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
    return sized(verdict, mine)


def by_range(runs: list[StreamRun]) -> dict[int, str]:
    """{number of trained delays: panel} of the panels on diversity, in order."""
    found = {run.trained[1] - run.trained[0] + 1: run.panel for run in runs if run.panel.startswith("b ")}
    return dict(sorted(found.items()))


def slopes_by_seed(runs: list[StreamRun], panels: dict[int, str], arm: str) -> list[float]:
    """Of log W on log N_d, for every seed that fits, and wins anything, at all ranges (four or more)."""
    by_panel = [{run.seed: run for run in of(runs, panel, arm)} for panel in panels.values()]
    seeds = sorted(set.intersection(*map(set, by_panel))) if len(by_panel) >= 4 else []
    out = []
    for seed in seeds:
        won = [found[seed].far().won for found in by_panel]
        if min(won) > 0:
            out.append(float(np.polyfit(np.log(list(panels)), np.log(won), 1)[0]))
    return out


def widths(runs: list[StreamRun]) -> dict[tuple[int, int | None], str]:
    """{(width, heads or None): panel} of the panels on model size, in order."""
    found = {}
    for panel in {run.panel for run in runs}:
        if match := re.fullmatch(r"size width-(\d+)(?:-heads-(\d+))?", panel):
            found[int(match[1]), int(match[2]) if match[2] else None] = panel
    return dict(sorted(found.items(), key=str))


def size(runs: list[StreamRun]) -> Verdict:
    panels = widths(runs)
    numbers = {panel: fitted(runs, panel) for panel in panels.values()}
    parts: dict[str, bool | None] = {}
    if len({width for width, _ in panels}) > 1:
        narrow, wide = (end(width for width, _ in panels) for end in (min, max))
        few = min((heads for _, heads in panels if heads), default=None)
        small, large = panels[narrow, few], panels[wide, few]
        found = {arm: paired(runs, (large, arm), (small, arm), lambda run: run.beyond) for arm in ARMS}
        adjusted = holm({arm: raw_p(d) for arm, d in found.items()})
        numbers["widest less narrowest"] = {arm: contrast(d, adjusted[arm], len(ARMS)) for arm, d in found.items()}
        parts = {f"{arm} wider is farther": larger(one) for arm, one in numbers["widest less narrowest"].items()}
        parts["only none fails to fit when narrow"], numbers["fit when narrow"] = none_fails(runs, small)
        many = max((heads for width, heads in panels if width == wide and heads), default=None)
        if many != few:
            d = paired(runs, (large, "alibi"), (panels[wide, many], "alibi"), lambda run: run.beyond)
            numbers["ALiBi, few heads less many"] = contrast(d, raw_p(d), 1)
            parts[f"ALiBi breaks sooner with {many} heads than with {few}"] = larger(
                numbers["ALiBi, few heads less many"]
            )
    verdict = Verdict(
        "2 size",
        "Larger models generalise farther; a small one without encoding fails even in range, with RoPE and ALiBi not.",
        f"first pasted token summed beyond, given fit, widest less narrowest: paired sign-flip, Holm over arms; shares "
        f"that fit at the narrowest: Fisher's exact test, none against RoPE and ALiBi; p < {SIGNIFICANT}",
        *combine(parts, "too few seeds for the test"),
        numbers,
    )
    return sized(verdict, [run for run in runs if run.panel in panels.values()])


def none_fails(runs: list[StreamRun], panel: str) -> tuple[bool | None, dict]:
    """Whether fewer seeds fit without encoding than with RoPE or ALiBi, and the counts."""
    counts = {arm: [len(of(runs, panel, arm, fitted=f)) for f in (True, False)] for arm in ARMS}
    fit, every = (counts["rope"][i] + counts["alibi"][i] for i in (0, 1))
    none_fit, none_every = counts["none"]
    if min(none_every, every) < ENOUGH:
        return None, counts
    table = [[none_fit, none_every - none_fit], [fit, every - fit]]
    p = float(stats.fisher_exact(table, alternative="less").pvalue)
    return p < SIGNIFICANT, counts | {"p": p}


def seeds_minor(runs: list[StreamRun]) -> Verdict:
    mine, parts, numbers = [run for run in runs if run.panel in TASKS.values()], {}, {}
    for task, panel in TASKS.items():
        for arm in ARMS:
            totals = [run.far(TOKENS).total for run in of(runs, panel, arm)]
            spread = (max(totals) - min(totals)) / np.mean(totals) if totals else None
            parts[f"{task} {arm}"] = part(of(runs, panel, arm), lambda _, spread=spread: spread <= SPREAD)
            numbers[f"{task} {arm}"] = summary(totals) | {"range_of_mean": spread and round(float(spread), 3)}
    verdict = Verdict(
        "2 seeds",
        "Seeds differ little.",
        f"token accuracy summed over all delays asked: range over the fitted seeds <= {SPREAD:.0%} of its mean",
        *combine(parts),
        numbers,
    )
    return sized(verdict, mine)


def twice_as_far(runs: list[StreamRun]) -> Verdict:
    """At the paper's size the range 0-50 asked at 101, else twice the longest trained delay."""
    panel = "b range-50" if of(runs, "b range-50", "none", fitted=False) else "a full"
    mine = [run for run in runs if run.panel == panel]
    parts, numbers = {}, {}
    if mine:
        at = 101 if panel == "b range-50" else 2 * mine[0].trained[1]
        floor = mine[0].points[at]["chance"]
        for arm in ARMS:
            first = [run.curve()[at] for run in of(runs, panel, arm)]
            parts[f"{arm} at {at}"] = part(first, lambda first: summary(first)["low"] > floor + ABOVE_FLOOR)
            numbers[arm] = summary(first) | {"distance": at, "floor": round(floor, 3)}
    verdict = Verdict(
        "50→101",
        "Trained to a delay of 50, a model still answers at 101 (an illustration in a summary of the paper).",
        f"first pasted token there: interval above the floor + {ABOVE_FLOOR}",
        *combine(parts),
        numbers,
    )
    return sized(verdict, mine)
