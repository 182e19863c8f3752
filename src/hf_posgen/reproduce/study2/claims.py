"""The claims of study 2 (Nevermann & Gros 2026, arXiv 2609.11913) and when we call each reproduced.

These thresholds were written before the run that they judge; change them only with a reason in the history. Only runs that
fit (mean over the trained delays >= .95) are judged, paired by seed. A test that could not reach p < .05 with the pairs
there are is not judged. The size of the models stands in every verdict: the paper's have 8 layers of width 512, and a
small model that does not show a claim refutes nothing, so there "not" reads "not judged".

"First" is the first pasted token, which must resolve the delay; content alone can find the rest.
"""

import numpy as np

from ..verdicts import Verdict, combine, holds_for, runs_of, summary
from .contrasts import ORDER, SIGNIFICANT, arm_numbers, in_order, larger, sized
from .scaling import diversity, size
from .streams import ARMS, TOKENS, StreamRun
from .transfer import transfer, transfer_separated

SPREAD = 0.10  # range of the sum over seeds, of its mean
ABOVE_FLOOR = 0.05  # first pasted token at twice the longest trained delay, its interval's low end
UNTESTED = "too few fitted pairs of seeds for the test"


def judge(runs: list[StreamRun]) -> list[Verdict]:
    """Return the verdict on every claim."""
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


TASKS = {"C": "a full", "S": "a selective"}
HOW_ORDERED = (
    f"first pasted token, summed over the delays beyond the trained ones: exact paired sign-flip test, Holm over the "
    f"contrasts {', '.join(f'{a} - {b}' for a, b in ORDER)} of a task, p < {SIGNIFICANT}"
)


def of_tasks(runs: list[StreamRun]) -> list[StreamRun]:
    """Return the runs of the panels that claim A is about."""
    return [run for run in runs if run.panel in TASKS.values()]


def rope_worst(runs: list[StreamRun]) -> Verdict:
    orders = {task: in_order(runs, panel) for task, panel in TASKS.items()}
    parts = {
        f"{task}: {name}": larger(orders[task][name]) for task in TASKS for name in ("none > rope", "alibi > rope")
    }
    numbers = {task: orders[task] | {"arms": arm_numbers(runs, panel)} for task, panel in TASKS.items()}
    statement = "Beyond the trained delays RoPE is worst, on full (C) and selective (S) copies."
    verdict = Verdict(
        "2.A", statement, f"{HOW_ORDERED}; both contrasts with RoPE, C and S", *combine(parts, UNTESTED), numbers
    )
    return sized(verdict, of_tasks(runs))


def none_over_alibi(runs: list[StreamRun]) -> Verdict:
    orders = {task: in_order(runs, panel) for task, panel in TASKS.items()}
    parts = {f"{task}: none > alibi": larger(orders[task]["none > alibi"]) for task in TASKS}
    statement = "Beyond the trained delays a model without encoding does better than ALiBi, on C and S."
    numbers = {task: orders[task]["none > alibi"] for task in TASKS}
    verdict = Verdict("2.A′", statement, f"{HOW_ORDERED}; C and S", *combine(parts, UNTESTED), numbers)
    return sized(verdict, of_tasks(runs), needs_paper_size=True)


def seeds_minor(runs: list[StreamRun]) -> Verdict:
    parts, numbers = {}, {}
    for task, panel in TASKS.items():
        for arm in ARMS:
            totals = [run.far(TOKENS).total for run in runs_of(runs, panel, arm)]
            spread = float((max(totals) - min(totals)) / np.mean(totals)) if totals else None
            parts[f"{task} {arm}"] = holds_for(totals, lambda _, spread=spread: spread <= SPREAD)
            numbers[f"{task} {arm}"] = summary(totals) | {"range_of_mean": spread and round(spread, 3)}
    verdict = Verdict(
        "2 seeds",
        "Seeds differ little.",
        f"token accuracy summed over all evaluated delays: range over the fitted seeds <= {SPREAD:.0%} of its mean",
        *combine(parts),
        numbers,
    )
    return sized(verdict, of_tasks(runs))


def twice_as_far(runs: list[StreamRun]) -> Verdict:
    """Judge, at the paper's size, the range 0-50 at a delay of 101, else twice the longest trained delay."""
    panel = "b range-50" if runs_of(runs, "b range-50", "none", fitted=False) else "a full"
    shown = [run for run in runs if run.panel == panel]
    parts, numbers = {}, {}
    if shown:
        at = 101 if panel == "b range-50" else 2 * shown[0].trained[1]
        floor = shown[0].points[at]["chance"]
        for arm in ARMS:
            first = [run.curve()[at] for run in runs_of(runs, panel, arm)]
            parts[f"{arm} at {at}"] = holds_for(first, lambda first: summary(first)["low"] > floor + ABOVE_FLOOR)
            numbers[arm] = summary(first) | {"distance": at, "floor": round(floor, 3)}
    verdict = Verdict(
        "50→101",
        "Trained to a delay of 50, a model still answers at 101 (an illustration in a summary of the paper).",
        f"first pasted token there: interval above the floor + {ABOVE_FLOOR}",
        *combine(parts),
        numbers,
    )
    return sized(verdict, shown)
