"""Many runs: arms × seeds of one or more studies, each a run folder, then one report.

A sweep file:

    name: my-sweep
    panels:
      study1:                       # a study: what its runs share, and how its arms differ
        base: {task: {...}, model: {...}, train: {...}}
        arms: {rope: {model: {position_encoding: rope}}, learned: {...}}
        seeds: [0, 1]
"""

import multiprocessing
import os
import shlex
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml
from tqdm.auto import tqdm

from .files import read_rows, write_rows, write_text
from .run_config import RunConfig, build_run, merge, read_yaml, run_hash, to_tree
from .tasks import build_task
from .tasks.registry import unknown


def presets() -> dict[str, Path]:
    """{name: file} of the sweeps that come with the package."""
    return {Path(p.name).stem: p for p in sorted(files("hf_posgen").joinpath("presets").iterdir(), key=str)}


def read_sweep(source: str) -> dict:
    """A preset by name, or a YAML file. Raises `ValueError` for neither."""
    if source in presets():
        return yaml.safe_load(presets()[source].read_text())
    if Path(source).suffix in (".yaml", ".yml"):
        return read_yaml(source)
    raise unknown("preset", source, presets())


def points(tree: dict) -> list[RunConfig]:
    """Every run of a sweep. Raises `ValueError` for unknown keys, no arms or no seeds."""
    for key in tree:
        if key not in ("name", "panels"):
            raise unknown("key of a sweep", key, ("name", "panels"))
    out = []
    for panel, part in (tree.get("panels") or {}).items():
        for key in part:
            if key not in ("base", "arms", "seeds"):
                raise unknown(f"key of panel {panel!r}", key, ("base", "arms", "seeds"))
        seeds, arms = part.get("seeds", [0]), part.get("arms") or {}
        if not arms or not seeds:
            raise ValueError(f"panel {panel!r} of the sweep needs at least one arm and one seed")
        for arm, changes in arms.items():
            for seed in seeds:
                tree_of_run = merge(part.get("base") or {}, changes or {})
                out.append(build_run(tree_of_run | {"seed": seed, "arm": arm, "panel": panel}))
    if not out:
        raise ValueError("the sweep has no panels")
    return out


def folder_name(run: RunConfig) -> str:
    return f"{run.panel}-{run.arm}-seed{run.seed}-{run_hash(run)}".lstrip("-")


def cost(run: RunConfig) -> float:
    """A rough relative cost of training a run, to order the work and to guess the time left."""
    task, model, train = build_task(run.task), run.model, run.train
    lengths = [cell.length for cell in task.cells("train")]
    tokens = train.steps * train.batch_size * train.gradient_accumulation * sum(lengths) / len(lengths)
    width = model["hidden_size"]
    mlp = 0 if model["mlp"] == "none" else 2 * width * model["intermediate_size"]
    return tokens * (model["num_hidden_layers"] * (4 * width**2 + mlp) + 2000 * model["num_hidden_layers"])


@dataclass(frozen=True)
class Failure:
    run: str
    last_lines: str


def commands(runs: list[RunConfig], out: Path) -> list[str]:
    """Each point as an ordinary launch of its own."""
    return [
        f"accelerate launch -m hf_posgen train {shlex.quote(str(out / folder_name(run) / 'run.yaml'))} "
        f"--out {shlex.quote(str(out / folder_name(run)))}"
        for run in runs
    ]


def sweep(source: str | dict, out: str | Path, *, workers: int | None = None, quiet: bool | None = None):
    """Train and evaluate every point that isn't done, then report; returns (rows, ReportPaths, failures).

    A point that fails doesn't stop the others. Calling it again skips what is done and resumes what is not.
    """
    from .report import report

    tree = read_sweep(source) if isinstance(source, str) else source
    runs, out = points(tree), Path(out)
    folders = {folder_name(run): run for run in runs}
    _claim(out, folders)
    waiting = {name: run for name, run in folders.items() if not (out / name / "results.jsonl").is_file()}
    failures = _run_all(waiting, out, workers or _workers(), quiet)
    rows = [row for name in folders for row in read_rows(out / name / "results.jsonl")]
    if not rows:
        return rows, None, failures
    write_rows(out / "results.jsonl", rows)
    return rows, report(rows, out, title=tree.get("name", "Sweep")), failures


def _claim(out: Path, folders) -> None:
    """Refuse a folder that holds something else; leave a list of the points."""
    if out.exists() and any(out.iterdir()) and not (out / "sweep.yaml").is_file():
        raise ValueError(f"{out} is not empty and holds no sweep: choose another folder")
    write_text(
        out / "sweep.yaml", yaml.safe_dump({name: to_tree(run) for name, run in folders.items()}, sort_keys=False)
    )


def _workers() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_REPORTS = None  # in a worker: where steps are reported


def _start_worker(queue) -> None:
    """One thread per worker: small models gain nothing from two, and the sweep has both cores busy."""
    global _REPORTS
    _REPORTS = queue
    import torch
    import transformers

    from . import register_auto_classes

    register_auto_classes()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _one(name: str, run: RunConfig, out: Path) -> None:
    from .training import train

    share = cost(run) / run.train.steps
    last = [time.monotonic(), 0]

    def on_step(step: int) -> None:
        last[1] += 1
        if time.monotonic() - last[0] > 0.5:
            _REPORTS.put(last[1] * share)
            last[:] = time.monotonic(), 0

    train(run, out / name, on_step=on_step, quiet=True)
    _REPORTS.put(last[1] * share)


def _run_all(waiting: dict[str, RunConfig], out: Path, workers: int, quiet) -> list[Failure]:
    """Run the points over worker processes, the costliest first; each worker imports torch once."""
    if not waiting:
        return []
    order = sorted(waiting, key=lambda name: -cost(waiting[name]))
    context, failures = multiprocessing.get_context("spawn"), []
    previous = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the workers when they start
    total = sum(cost(run) for run in waiting.values())
    with context.Manager() as manager:
        queue = manager.Queue()
        with (
            ProcessPoolExecutor(min(workers, len(order)), context, _start_worker, (queue,)) as pool,
            tqdm(total=100.0, desc=f"{len(order)} runs", disable=quiet, bar_format=BAR) as bar,
        ):
            futures = {pool.submit(_one, name, waiting[name], out): name for name in order}
            while pending := [f for f in futures if not f.done()]:
                _drain(queue, bar, total)
                bar.set_postfix_str(f"{len(futures) - len(pending)} of {len(futures)} runs done")
                time.sleep(0.3)
            _drain(queue, bar, total)
            for future in as_completed(futures):
                if future.exception() is not None:
                    text = "".join(traceback.format_exception(future.exception())).strip().splitlines()
                    failures.append(Failure(futures[future], "\n".join(text[-3:])))
    if previous is None:
        del os.environ["OMP_NUM_THREADS"]
    else:
        os.environ["OMP_NUM_THREADS"] = previous
    return failures


BAR = "{desc} |{bar:28}| {percentage:3.0f} % [{elapsed} < {remaining}] {postfix}"


def _drain(queue, bar, total: float) -> None:
    while not queue.empty():
        bar.update(min(100.0 * queue.get() / total, 100.0 - bar.n))


def best_run(rows: list[dict]) -> str | None:
    """The run with the highest exact match on validation-like cells among those that fit (never on a held-out split)."""
    scores: dict[str, list] = {}
    for row in rows:
        if row["fit"] and row["split"] in ("validation", "test"):
            scores.setdefault(row["run"], []).append(row["exact_match"] or 0.0)
    return max(scores, key=lambda run: sum(scores[run]) / len(scores[run])) if scores else None


def how_to_load(folder: Path) -> str:
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"model = AutoModelForCausalLM.from_pretrained({str(folder)!r}, trust_remote_code=True)\n"
        f"tokenizer = AutoTokenizer.from_pretrained({str(folder)!r})"
    )


def print_outcome(out: Path, rows, paths, failures, stream=sys.stdout) -> None:
    """What a sweep shows at its end."""
    from .report import summary_tables

    say = lambda *text: print(*text, file=stream)  # noqa: E731
    if rows:
        say("\n" + summary_tables(rows))
        say(f"\nReport: {paths.markdown}")
        for figure in paths.figures:
            say(f"Figure: {figure}")
        best = best_run(rows)
        if best:
            say(f"\nLoad the best checkpoint:\n{how_to_load((out / best).resolve())}")
    for failure in failures:
        say(f"\nFailed: {failure.run}\n{failure.last_lines}")
