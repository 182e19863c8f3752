"""Study 1, from training to verdicts: `reproduce(out)`. Called again it goes on where it stopped."""

import itertools
import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from ...analysis import ANALYSES, analyze
from ...common.files import write_text
from ...run.folder import RunFolder
from ...sweep.spec import read_sweep
from ..steps import accuracy_cell, evaluate_again, part_of, trained
from ..verdict_page import verdict_page
from ..verdicts import Run, Verdict, collect, runs_of, summary
from .claims import judge

# What each panel's runs are analysed for; the first seed of every arm is analysed for everything, with figures.
NEEDED = {
    "offset1": ("carrier_kernel", "pinning", "equivariance"),
    "offset3": ("carrier_kernel", "pinning", "equivariance"),
    "offset7": ("carrier_kernel", "pinning", "equivariance"),
    "linear": ("min_norm",),
}


def reproduce(
    out: str | Path,
    *,
    seeds: int | None = None,
    panels=None,
    arms=None,
    workers: int | None = None,
    quiet: bool | None = None,
) -> list[Verdict]:
    """Train, evaluate, analyse, judge; writes verdicts.json, verdicts.md, results.md and figures in `out`.

    seeds: how many (default: the preset's ten). panels, arms: names, for a part of the study; what isn't run is not
    judged. Raises `ValueError` for an unknown panel or arm, `RuntimeError` where a run failed.
    """
    out, tree = Path(out), read_sweep("study1")
    tree["panels"] = part_of(tree["panels"], seeds, panels, arms)
    rows = evaluated_at_the_end(trained(tree, out, workers, quiet), out)
    _analyze_all(collect(rows, out), workers or os.cpu_count() or 1, quiet)
    runs = collect(rows, out)
    verdicts = judge(runs)
    write_outcome(out, runs, verdicts)
    return verdicts


def evaluated_at_the_end(rows: list[dict], out: Path) -> list[dict]:
    """Return rows of what the last position answers, for runs trained and measured at every position too: of a longer
    sequence's positions many lie inside the trained range, and their mean says little about those beyond."""
    at_the_end = []
    for name, group in itertools.groupby(rows, lambda row: row["run"]):
        run_rows = list(group)
        folder = RunFolder(out / name)
        if folder.config_tree()["task"].get("query") == "every":
            facts = {key: run_rows[0][key] for key in ("panel", "arm", "fit")}
            run_rows = [row | facts for row in evaluate_again(folder.path, "last", {"query": "last"})]
        at_the_end += run_rows
    return at_the_end


def wanted(run: Run) -> tuple[str, ...]:
    """Return which analyses a run gets: all of them for the first seed, else what its panel's claims need."""
    if run.seed == 0:
        return tuple(ANALYSES)
    extra = ("dilution",) if (run.panel, run.arm) == ("offset3", "rope") else ()
    return NEEDED.get(run.panel, ()) + extra


def _analyze_all(runs: list[Run], workers: int, quiet) -> None:
    """Measure every run's missing analyses, over worker processes."""
    jobs = [(run.folder, [name for name in wanted(run) if name not in run.analysis], run.seed == 0) for run in runs]
    jobs = [job for job in jobs if job[1]]
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), context, _one_thread) as pool:
        waiting = [pool.submit(_analyze_one, *job) for job in jobs]
        for future in tqdm(as_completed(waiting), total=len(waiting), desc="analyses", disable=quiet):
            future.result()


def _one_thread() -> None:
    """Prepare a worker: small models gain nothing from two threads, and there is a worker per core."""
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _analyze_one(folder: Path, names: list[str], figures: bool) -> None:
    analyze(folder, only=names, figures=figures)


def write_outcome(out: Path, runs: list[Run], verdicts: list[Verdict]) -> None:
    """Write the numbers as JSON, the verdicts and the table as Markdown, the figures."""
    from .figures import figures
    from .handmade_table import accuracy_by_length

    by_hand = accuracy_by_length()
    made = figures(runs, out / "figures")
    content = {"verdicts": [asdict(v) for v in verdicts], "learned_table_by_hand": by_hand}
    write_text(out / "verdicts.json", json.dumps(content, indent=1) + "\n")
    write_text(out / "results.md", "# Study 1: accuracy by length\n\n" + table(runs, by_hand) + "\n")
    write_text(out / "verdicts.md", verdict_page("Study 1: verdicts", HOW, verdicts, made))


LENGTHS = (16, 17, 24, 48, 128, 512, 1024)


def table(runs: list[Run], by_hand: dict[int, float]) -> str:
    """Return every arm as a Markdown table: share of seeds that fit, and mean accuracy with Student's t interval over
    those (over all where none fits)."""
    lines = []
    for panel, arm in dict.fromkeys((run.panel, run.arm) for run in runs):
        all_runs, fitted = runs_of(runs, panel, arm, fitted=False), runs_of(runs, panel, arm)
        shown = fitted or all_runs
        line = {
            "panel": panel,
            "arm": arm,
            "parameters": f"{all_runs[0].parameters:,}",
            "fit": f"{len(fitted)} of {len(all_runs)}",
        }
        line |= {str(n): accuracy_cell(summary(run.accuracy[n] for run in shown if n in run.accuracy)) for n in LENGTHS}
        lines.append(line)
    lines.append(
        {"panel": "by hand", "arm": "learned, not trained", "parameters": "", "fit": ""}
        | {str(n): f"{by_hand[n]:.2f}" if n in by_hand else "" for n in LENGTHS}
    )
    counts = next((run.bag_of_words for run in runs if run.panel == "offset3"), {})
    lines.append(
        {"panel": "", "arm": "bag of words", "parameters": "", "fit": ""}
        | {str(n): f"{counts[n]:.2f}" if n in counts else "" for n in LENGTHS}
    )
    return pd.DataFrame(lines).to_markdown(index=False)


HOW = """\
Means over the seeds that fit, with Student's t interval. Thresholds were written down before the run, in
`hf_posgen/reproduce/study1/claims.py`. Task sizes, model sizes and every formula are reconstructed: the paper was read from
its abstract. The models are tiny, and a verdict is about models of this size."""
