"""What trained runs are evaluated on afterwards: the other kind of copy, fresh sequences, longer windows."""

from dataclasses import replace
from pathlib import Path

from ...evaluation.runs import open_run
from ..steps import evaluate_again
from ..verdicts import runs_of
from .streams import TOKENS, StreamRun

FRESH = 10_000  # added to a run's seed: other sequences
WINDOWS = (1.5, 2, 4)  # the longer windows of the T x d grid, in trained ones
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)  # its delays, in tokens beyond the trained ones
GRID_SEEDS = 4
FREE_COUNT = 200  # sequences per delay read with the model's own answers
GRID_COUNT = 200  # sequences per cell of the grid, which is exploratory


def other_kind(rows: list[dict], out: Path) -> list[dict]:
    """Return, for the runs trained on both kinds and evaluated on full copies, the rows of selective ones, from the same
    weights."""
    other_rows = []
    for run in dict.fromkeys(row["run"] for row in rows if row["panel"] == "mixed"):
        task = open_run(out / run).task
        own = range(task.s_min, task.s_max + 1)
        new = [d for d in range(max(task.test_distances) + 1) if d not in own]
        other_rows += evaluate_again(out / run, "selective", {"asked": "S", "test_distances": new})
    return other_rows


def best_again(fitted: list[StreamRun]) -> dict:
    """Return the seed with the largest sum of token accuracy over all delays, and its sum on sequences it wasn't
    chosen on."""
    if not fitted:
        return {}
    best = max(fitted, key=lambda run: run.far(TOKENS).total)
    out = {"best": f"seed {best.seed}: {best.far(TOKENS).total:.2f}", "best, fresh": ""}
    if best.folder and best.folder.is_dir():
        again = replace(best, rows=evaluate_again(best.folder, "fresh", {}, fresh=FRESH))
        out["best, fresh"] = f"{again.far(TOKENS).total:.2f}"
    return out


def free_running(fitted: list[StreamRun]) -> list[float]:
    """Return per run the token accuracy summed over all evaluated delays, where the model reads its own pasted tokens."""
    totals = []
    for run in fitted:
        if run.folder and run.folder.is_dir():
            rows = evaluate_again(run.folder, "free_running", {}, count=FREE_COUNT, free_running=True)
            totals.append(replace(run, rows=rows).far("free_running_accuracy").total)
    return totals


def grid_rows(runs: list[StreamRun]) -> list[dict]:
    """Return the rows of window × delay: full copies at trained and at longer windows, at trained and at other delays,
    for some fitted seeds."""
    rows = []
    for arm in dict.fromkeys(run.arm for run in runs):
        for run in runs_of(runs, "a full", arm)[:GRID_SEEDS]:
            task, (low, high) = open_run(run.folder).task, run.trained
            near = {0, low // 2, low - 1} if low else set()
            new = sorted(d for d in task.test_distances if d in near or d - high in STEPS)
            changes = {"test_distances": new, "test_windows": [int(times * task.window) for times in WINDOWS]}
            splits = ("test", "farther", "nearer", "longer", "both")
            rows += evaluate_again(run.folder, "grid", changes, splits=splits, count=GRID_COUNT)
    return rows
