"""Measuring a model cell by cell: `save_evaluation(folder)` reads a run folder and writes its results.jsonl."""

from pathlib import Path

import torch

from .budget import training_flops
from .files import read_rows, write_rows
from .measuring import measure, measure_cells, validation_summary
from .quiet import without_bars
from .run_config import RunConfig, build_run, component_name, read_yaml
from .tasks import Task, build_task

__all__ = ["evaluate", "fits", "load_run", "measure", "measure_cells", "save_evaluation"]

FIT = 0.99  # of every trained cell; for streams
FIT_STREAM = 0.95  # of the mean over trained distances


def fits(task: Task, validation_rows: list[dict]) -> bool:
    """Whether a run learned what it was shown: streams by the mean over trained distances, other tasks at every cell."""
    summary = validation_summary(validation_rows)
    return summary["token_accuracy"] >= FIT_STREAM if task.paste else summary["worst_token_accuracy"] >= FIT


def run_facts(run: RunConfig, task: Task, model, folder: Path) -> dict:
    """What every row of a run says about the run."""
    steps = [line for line in read_rows(folder / "train.jsonl") if "lr" in line]
    tokens = steps[-1]["tokens_seen"] if steps else 0
    trained = task.trained_cells()
    distances = [cell.distance for cell in trained if cell.distance is not None]
    return {
        "run": folder.resolve().name,
        "arm": run.arm,
        "panel": run.panel,
        "encoding": component_name(run.model, "position_encoding"),
        "sampler": component_name(run.model, "position_sampler"),
        "mixer": component_name(run.model, "mixer"),
        "logit_scale": component_name(run.model, "logit_scale"),
        "out_of_range": run.model["out_of_range"],
        "task": task.name,
        "seed": run.seed,
        "bos": task.bos,
        "head_size": model.config.head_dim,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens_seen": tokens,
        "train_flops": training_flops(run, tokens),
        "lr": run.train.learning_rate,
        "train_length": max(cell.length for cell in trained),
        "train_distance": [min(distances), max(distances)] if distances else None,
        "step": steps[-1]["step"] if steps else 0,
        "selected_on": "validation" if run.train.select == "best" else "last step",
        "dtype": str(model.dtype).removeprefix("torch."),
        "revision": None,
    }


def load_run(folder: str | Path, device: torch.device | None = None):
    """(run, task, model in evaluation mode) of a finished run folder. Raises `ValueError` for another folder."""
    from transformers import AutoModelForCausalLM

    folder = Path(folder)
    for needed in ("run.yaml", "model.safetensors"):
        if not (folder / needed).is_file():
            raise ValueError(f"{folder} is no finished run: it holds no {needed}")
    run = build_run(read_yaml(folder / "run.yaml"))
    with without_bars():
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() and not run.train.cpu else "cpu")
    return run, build_task(run.task), model.to(device)


def evaluate(folder: str | Path, *, count: int | None = None, splits=None, processes=None) -> list[dict]:
    """Rows for every cell of a run folder's splits (its own unless given), `count` sequences each.

    Raises `ValueError` for a folder without a run, a split the task doesn't have, and a cell past a learned table."""
    folder = Path(folder)
    run, task, model = load_run(folder, processes.device if processes else None)
    for split in splits or ():
        task.cells(split)
    mine = [split for split in splits or run.evaluation.splits if task.splits().get(split)]
    wanted = [(split, cell) for split in dict.fromkeys(["validation", *mine]) for cell in task.cells(split)]
    count = run.evaluation.count if count is None else count
    rows = measure_cells(model, task, wanted, run.seed, count, run.evaluation.batch_tokens, processes)
    facts = run_facts(run, task, model, folder)
    facts["fit"] = fits(task, [row for row in rows if row["split"] == "validation"])
    return [facts | row for row in rows if row["split"] in mine]


def save_evaluation(folder: str | Path, *, processes=None, **options) -> list[dict]:
    """`evaluate`, written to the folder's results.jsonl in one piece."""
    rows = evaluate(folder, processes=processes, **options)
    if processes is None or processes.is_main_process:
        write_rows(Path(folder) / "results.jsonl", rows)
    return rows
