"""Study 2, from training to verdicts: `reproduce(out)`. Called again it goes on where it stopped."""

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from ...common.files import write_text
from ...sweep.spec import presets, read_sweep
from ..steps import part_of, trained
from ..verdict_page import verdict_page
from ..verdicts import Verdict, runs_of, summary
from .claims import judge
from .evaluated import best_again, free_running, other_kind
from .streams import FIRST, REST, TOKENS, StreamRun, streams

PARTS = ("a", "b", "c", "c-separated", "size")
SCALES = {"small": "-small", "paper": ""}


def reproduce(
    out: str | Path,
    *,
    scale: str = "small",
    parts=("a",),
    seeds: int | None = None,
    panels=None,
    arms=None,
    study1: str | Path | None = None,
    workers: int | None = None,
    quiet: bool | None = None,
) -> list[Verdict]:
    """Train, evaluate, judge: each part in a folder of its own, and verdicts.json|md, results.md and figures in `out`.

    scale: "small" (two CPU cores) or "paper" (GPUs). parts: of PARTS. seeds: how many (default: the preset's). panels,
    arms: names, for a part of the study; what isn't run is not judged. study1: the folder of that study's reproduction,
    whose curves then stand beside the 2 x 2. Raises `ValueError` for an unknown name or a part
    that has no preset at this scale, `RuntimeError` where a run failed.
    """
    out, runs = Path(out), []
    trees = {part: sweep_of(part, scale) for part in parts}
    for part, tree in trees.items():
        tree["panels"] = part_of(tree["panels"], seeds, panels, arms)
        rows = trained(tree, out / part, workers, quiet)
        rows += other_kind(rows, out / part)
        folders = {row["run"]: out / part / row["run"] for row in rows}
        runs += streams(rows, folders, part)
    verdicts = judge(runs)
    write_outcome(out, runs, verdicts, Path(study1) if study1 else None)
    return verdicts


def sweep_of(part: str, scale: str) -> dict:
    """Return the preset of a part. Raises `ValueError` where there is none."""
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}; allowed: {', '.join(SCALES)}")
    name = f"study2-{part}{SCALES[scale]}"
    if name not in presets():
        have = [part for part in PARTS if f"study2-{part}{SCALES[scale]}" in presets()]
        raise ValueError(f"part {part!r} has no preset at scale {scale!r}; allowed: {', '.join(have)}")
    return read_sweep(name)


def write_outcome(out: Path, runs: list[StreamRun], verdicts: list[Verdict], study1: Path | None) -> None:
    """Write the numbers as JSON, the verdicts and the table as Markdown, the figures."""
    from .figures import figures

    made = figures(runs, out / "figures", study1)
    write_text(out / "verdicts.json", json.dumps({"verdicts": [asdict(v) for v in verdicts]}, indent=1) + "\n")
    write_text(out / "results.md", f"# Study 2: sums over delays\n\n{tables(runs)}\n")
    write_text(out / "verdicts.md", verdict_page("Study 2: verdicts", HOW, verdicts, made))


def tables(runs: list[StreamRun]) -> str:
    """Return every arm as Markdown tables: size, share of seeds that fit, and over those the sums, W and the best seed,
    measured again; then P with its nulls."""
    sums, ratios = [], []
    for panel, arm in dict.fromkeys((run.panel, run.arm) for run in runs):
        all_runs, fitted = runs_of(runs, panel, arm, fitted=False), runs_of(runs, panel, arm)
        numbers = {metric: [run.far(metric) for run in fitted] for metric in (FIRST, REST, TOKENS)}
        totals = {metric: _mean(one.total for one in by_seed) for metric, by_seed in numbers.items()}
        name = {"panel": panel, "arm": arm}
        line = {"parameters": f"{all_runs[0].parameters:,}", "fit": f"{len(fitted)} of {len(all_runs)}"}
        line |= {"first beyond": _mean(run.beyond for run in fitted), "W": _mean(one.won for one in numbers[FIRST])}
        line |= {"first": totals[FIRST], "rest": totals[REST], "all": totals[TOKENS]}
        line |= {"all, free running": _mean(free_running(fitted))}
        sums.append(name | line | best_again(fitted))
        if fitted:
            nulls = {"overshooting by 5": numbers[FIRST][0].overshoot, "2-gram baseline": numbers[TOKENS][0].ngram}
            line = {"first": _ratio(numbers[FIRST]), "all": _ratio(numbers[TOKENS])}
            ratios.append(name | line | {null: _mean([value]) for null, value in nulls.items()})
    shown = [pd.DataFrame(lines).fillna("").to_markdown(index=False) for lines in (sums, ratios)]
    return f"{SUMS}\n\n{shown[0]}\n\n{RATIOS}\n\n{shown[1]}"


def _ratio(numbers: list) -> str:
    """Return the mean P of some seeds, or why it isn't valid."""
    reasons = [one.invalid for one in numbers if one.invalid]
    return f"not valid: {reasons[0]}" if reasons else _mean(one.ratio for one in numbers)


def _mean(values) -> str:
    """Return a mean with its interval, with two decimals."""
    mean = summary(values)
    if mean["mean"] is None:
        return ""
    interval = "" if mean["low"] is None else f" [{mean['low']:.2f}, {mean['high']:.2f}]"
    return f"{mean['mean']:.2f}{interval}"


SUMS = """\
Over the seeds that fit, with Student's t interval. First beyond: accuracy of the first pasted token, summed over the delays
beyond the trained ones; W: the same above the floor, as a share of what can be known. First, rest, all: accuracy of those
pasted tokens, summed over all evaluated delays; free running: where the model reads its own pasted tokens, not the right
ones. Best: the seed with the largest sum of all, chosen on the very sequences it is shown for; beside it the same seed on
fresh ones."""

RATIOS = """\
P: of such a sum, the part beyond the trained delays over the rest. Beside it its nulls: the P of a model that is right up
to five tokens beyond whatever it was trained on, and the P that a 2-gram baseline, which is blind to the delay, has on all
pasted tokens."""

HOW = """\
Over the seeds that fit, paired by seed. Thresholds were written down before the run, in
`hf_posgen/reproduce/study2/claims.py`. What the paper leaves open is *reconstructed*; see the presets and the task's
docstring. A BOS token begins every stream at small scale, none does at the paper's. A verdict is about models of the
size it names; what small models don't show is not refuted."""
