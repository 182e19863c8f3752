"""How study 2's arms and panels compare, seed by seed, and what a verdict says of the models' size."""

from dataclasses import replace

import numpy as np

from ...results.statistics import clopper_pearson, holm, sign_flip, t_interval, underpowered
from ..verdicts import NOT, NOT_JUDGED, Verdict, rounded, runs_of, summary
from .streams import ARMS, FIRST, TOKENS, StreamRun

ORDER = (("none", "rope"), ("alibi", "rope"), ("none", "alibi"))  # the contrasts of a task, corrected together
SIGNIFICANT = 0.05
PAPER_SIZE = 20_000_000  # parameters; 8 layers of 512 have 25 million


def fit_count(runs: list[StreamRun], panel: str, arm: str) -> tuple[int, int]:
    """Return how many of an arm's runs fit, and how many there are."""
    return len(runs_of(runs, panel, arm)), len(runs_of(runs, panel, arm, fitted=False))


def arm_numbers(runs: list[StreamRun], panel: str, arms=ARMS) -> dict:
    """Return per arm: fitted of all seeds with the exact interval, and over the fitted ones the sums, P with its nulls, and
    W. The 2-gram baseline is counted over all pasted tokens, so it stands beside their P alone."""
    out = {}
    for arm in arms:
        all_runs, fitted = runs_of(runs, panel, arm, fitted=False), runs_of(runs, panel, arm)
        if not all_runs:
            continue
        low, high = clopper_pearson(len(fitted), len(all_runs))
        out[arm] = {
            "fitted": len(fitted),
            "seeds": len(all_runs),
            "share_at_least": round(low, 2),
            "share_at_most": round(high, 2),
            "parameters": all_runs[0].parameters,
            "first_summed_beyond": summary(run.beyond for run in fitted),
        }
        for metric in (FIRST, TOKENS):
            numbers = [run.far(metric) for run in fitted]
            out[arm][metric] = {
                "sum": summary(one.total for one in numbers),
                "P": summary(one.ratio for one in numbers),
                "P_invalid": next((one.invalid for one in numbers if one.invalid), ""),
                "P_overshooting_by_5": summary(one.overshoot for one in numbers)["mean"],
                "W": summary(one.won for one in numbers),
            }
            if metric == TOKENS:
                out[arm][metric]["P_of_2gram_baseline"] = summary(one.ngram for one in numbers)["mean"]
    return out


def in_order(runs: list[StreamRun], panel: str) -> dict:
    """Return the contrasts of ORDER on the first pasted token, summed beyond the trained delays; p by Holm over the
    three."""
    differences = {f"{a} > {b}": paired(runs, (panel, a), (panel, b), lambda run: run.beyond) for a, b in ORDER}
    adjusted = holm({name: raw_p(values) for name, values in differences.items()})
    return {name: contrast(values, adjusted[name], len(ORDER)) for name, values in differences.items()}


def larger(difference: dict) -> bool | None:
    """Return whether a contrast carries its claim; None where no outcome could have."""
    if difference["underpowered"]:
        return None
    return bool(difference["difference"] > 0 and difference["p"] < SIGNIFICANT)


def paired(runs: list, left: tuple[str, str], right: tuple[str, str], number) -> np.ndarray:
    """Return number(run) of one (panel, arm) less that of another, over the seeds where both fit, in the seeds' order."""
    lefts, rights = ({run.seed: run for run in runs_of(runs, *side)} for side in (left, right))
    seeds = sorted(lefts.keys() & rights.keys())
    return np.array([number(lefts[seed]) - number(rights[seed]) for seed in seeds])


def contrast(differences: np.ndarray, p: float | None, contrasts: int) -> dict:
    """Return a paired contrast for reading. p: by the exact sign-flip test, corrected for so many contrasts."""
    low, high = t_interval(differences) or (None, None)
    mean = differences.mean() if len(differences) else None
    out = {"pairs": len(differences), "difference": rounded(mean), "low": rounded(low), "high": rounded(high)}
    return out | {"p": rounded(p), "underpowered": underpowered(len(differences), contrasts)}


def raw_p(differences: np.ndarray) -> float:
    """Return the p of the exact sign-flip test; 1 where there is no pair."""
    return sign_flip(differences).p if len(differences) else 1.0


def sized(verdict: Verdict, runs: list[StreamRun], needs_paper_size: bool = False) -> Verdict:
    """Return a verdict with the models' size in the reason. Small models refute nothing, and confirm nothing either where
    needs_paper_size."""
    if not runs:
        return replace(verdict, verdict=NOT_JUDGED, reason="not run")
    smallest, largest = (f(run.parameters for run in runs) for f in (min, max))
    span = f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    reason = f"{verdict.reason} (models of {span} parameters)"
    small = largest < PAPER_SIZE
    if small and needs_paper_size:
        return replace(verdict, verdict=NOT_JUDGED, reason=f"{reason}: the claim is about 8 layers of width 512")
    if small and verdict.verdict == NOT:
        return replace(verdict, verdict=NOT_JUDGED, reason=f"{reason}: small models refute nothing")
    return replace(verdict, reason=reason)
