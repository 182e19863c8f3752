"""Run folders: what is evaluated of one, and where its rows are kept."""

from pathlib import Path

import torch

from ..common.files import read_rows, write_rows
from ..common.quiet import without_bars
from ..run.build import RunConfig
from ..run.components import component_name, table_rows
from ..run.cost import training_flops
from ..run.folder import RunFolder
from ..tasks import Task, build_task
from .cells import EvaluationTarget, evaluate_target


def task_facts(task: Task) -> dict:
    """What every row says about the task."""
    trained = task.trained_cells()
    lengths = [cell.length for cell in trained]
    distances = [cell.distance for cell in trained if cell.distance is not None]
    return {
        "task": task.name,
        "kind": task.kind,
        "bos": task.bos,
        "shortest_train_length": min(lengths),
        "train_length": max(lengths),
        "train_distance": [min(distances), max(distances)] if distances else None,
    }


def run_facts(run: RunConfig, task: Task, model, folder: Path) -> dict:
    """What every row of a run says about the run."""
    steps = [line for line in RunFolder(folder).log() if "lr" in line]
    tokens = steps[-1]["tokens_seen"] if steps else 0
    return task_facts(task) | {
        "run": folder.resolve().name,
        "arm": run.arm,
        "panel": run.panel,
        "encoding": component_name(run.model, "position_encoding"),
        "sampler": component_name(run.model, "position_sampler"),
        "mixer": component_name(run.model, "mixer"),
        "logit_scale": component_name(run.model, "logit_scale"),
        "out_of_range": run.model["out_of_range"],
        "seed": run.seed,
        "head_size": model.config.head_dim,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens_seen": tokens,
        "train_flops": training_flops(run, tokens),
        "lr": run.train.learning_rate,
        "step": steps[-1]["step"] if steps else 0,
        "selected_on": "validation" if run.train.select == "best" else "last step",
        "dtype": str(model.dtype).removeprefix("torch."),
        "revision": None,
    }


def load_run(folder: str | Path, device: torch.device | None = None):
    """(run, task, model in evaluation mode) of a finished run folder. Raises `ValueError` for another folder."""
    from transformers import AutoModelForCausalLM

    folder = Path(folder)
    RunFolder(folder).require_finished()
    run = RunFolder(folder).run()
    with without_bars():
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() and not run.train.cpu else "cpu")
    return run, build_task(run.task), model.to(device)


def open_run(folder: str | Path, device: torch.device | None = None) -> EvaluationTarget:
    """What is asked of a run folder. Raises as `load_run` does."""
    run, task, model = load_run(folder, device)
    facts = run_facts(run, task, model, Path(folder))
    return EvaluationTarget(str(folder), model, task, facts, run.seed, run.evaluation, table_rows(run.model))


def evaluate(folder: str | Path, *, processes=None, **options) -> list[dict]:
    """`evaluate_target` a run folder. Raises `ValueError` as that does, and for a folder without a run."""
    return evaluate_target(open_run(folder, processes.device if processes else None), processes=processes, **options)


def save_evaluation(folder: str | Path, *, processes=None, **options) -> list[dict]:
    """`evaluate`, written to the folder's results.jsonl in one piece (`keep_rows`)."""
    rows = evaluate(folder, processes=processes, **options)
    if processes is None or processes.is_main_process:
        keep_rows(RunFolder(folder).results, rows)
    return rows


def keep_rows(file: Path, rows: list[dict]) -> None:
    """Write a model's rows; what the file holds of it in other cells stays, under the new rows' facts. Whether it fits is
    what the most sequences said."""
    cell = lambda row: (row["split"], row["length"], row["distance"], row["kind"])  # noqa: E731
    new, facts = {cell(row) for row in rows}, ("run", "arm", "panel")
    every = [row | {key: rows[0][key] for key in facts} for row in read_rows(file) if cell(row) not in new] + rows
    most = max(every, key=lambda row: row["count"])  # the first of those that tie
    write_rows(file, [row | {"fit": most["fit"]} for row in every])
