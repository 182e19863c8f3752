"""Study 2's claims C and C′: what training on both tasks changes, beside each task alone; and when we call it reproduced.

As in claims.py the thresholds were written before the run that they judge.
"""

from functools import partial

from ..verdicts import ENOUGH, Verdict, combine, runs_of
from .contrasts import contrast, paired, sized
from .streams import ARMS, FIRST, TOKENS, StreamRun

CHANGED = 0.05  # mean change of a region's accuracy: its interval excludes 0, and the mean is larger than this
NEAR = 20  # delays beyond both trained ranges that count as moderately far; what lies further is far out


def changes(runs: list[StreamRun], study: str, arm: str) -> dict:
    """Return the change of token accuracy from a task alone to the mixture, by evaluated task and region: {"C near":
    contrast}. Regions: own, that task's trained delays; other, the other task's; near and far, beyond both (see NEAR)."""
    ranges, out = {}, {}
    for kind in ("full", "selective"):
        alone = runs_of(runs, f"{study} {kind}", arm, fitted=False)
        ranges[kind] = range(alone[0].trained[0], alone[0].trained[1] + 1) if alone else None
    for kind, other, name in (("full", "selective", "C"), ("selective", "full", "S")):
        if None in ranges.values():
            continue
        end = max(ranges[kind].stop, ranges[other].stop)
        regions = {
            "own": ranges[kind],
            "other": ranges[other],
            "near": range(end, end + NEAR),
            "far": range(end + NEAR, 121),
        }
        for region, distances in regions.items():
            for metric in (TOKENS, FIRST):
                mixed, alone = (f"{study} mixed {kind}", arm), (f"{study} {kind}", arm)
                change = paired(runs, mixed, alone, partial(StreamRun.mean, distances=distances, metric=metric))
                label = f"{name} {region}" + (", first" if metric == FIRST else "")
                out[label] = contrast(change, None, 1) | {"distances": f"{distances[0]}-{distances[-1]}"}
    return out


def gained(change: dict | None) -> bool | None:
    """Return whether accuracy rose; None with too few pairs of seeds to judge."""
    return None if _few(change) else bool(change["difference"] > CHANGED and change["low"] > 0)


def lost(change: dict | None) -> bool | None:
    """Return whether accuracy fell; None with too few pairs of seeds to judge."""
    return None if _few(change) else bool(change["difference"] < -CHANGED and change["high"] < 0)


def kept(change: dict | None) -> bool | None:
    """Return whether accuracy fell by no more than `CHANGED`; None with too few pairs of seeds to judge."""
    return None if _few(change) else bool(change["low"] > -CHANGED)


def _few(change: dict | None) -> bool:
    return change is None or change["pairs"] < ENOUGH


HOW_CHANGED = (
    f"token accuracy, mixture less the task alone at the same exposure, paired by seed, mean over a region: beyond "
    f"±{CHANGED} with Student's interval off 0"
)


def transfer(runs: list[StreamRun]) -> Verdict:
    by_arm = {arm: changes(runs, "c", arm) for arm in ARMS}
    parts = {}
    for task in "CS":
        parts[f"{task}: RoPE loses near"] = lost(by_arm["rope"].get(f"{task} near"))
        for arm in ("none", "alibi"):
            parts[f"{task}: {arm} gains near"] = gained(by_arm[arm].get(f"{task} near"))
            parts[f"{task}: {arm} loses far out"] = lost(by_arm[arm].get(f"{task} far"))
    statement = (
        "Trained on both tasks at neighbouring delays (C 15-25, S 25-35), RoPE loses; ALiBi and no encoding gain "
        "moderately out of range and lose far out."
    )
    threshold = f"{HOW_CHANGED}; near: up to {NEAR} delays beyond both ranges"
    verdict = Verdict("2.C", statement, threshold, *combine(parts), by_arm)
    return sized(verdict, [run for run in runs if run.panel.startswith("c ")], needs_paper_size=True)


def transfer_separated(runs: list[StreamRun]) -> Verdict:
    by_arm, parts = {arm: changes(runs, "c-separated", arm) for arm in ARMS}, {}
    for arm in ("none", "alibi"):
        parts[f"C: {arm} gains around S's range"] = gained(by_arm[arm].get("C other"))
        parts[f"C: {arm} loses in its own range"] = lost(by_arm[arm].get("C own"))
        parts[f"S: {arm} loses around C's range"] = lost(by_arm[arm].get("S other"))
    parts["C: RoPE loses nothing in range"] = kept(by_arm["rope"].get("C own"))
    statement = (
        "Trained on both tasks at separated delays (C 15-25, S 45-55), none and ALiBi gain around S's range and lose "
        "around C's; RoPE loses nothing in range."
    )
    verdict = Verdict(
        "2.C′", statement, f"{HOW_CHANGED}; nothing lost: low end above -{CHANGED}", *combine(parts), by_arm
    )
    return sized(verdict, [run for run in runs if run.panel.startswith("c-separated ")], needs_paper_size=True)
