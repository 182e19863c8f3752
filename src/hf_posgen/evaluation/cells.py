"""Asking a model cell by cell: `save_evaluation(folder)` reads a run folder and writes its results.jsonl.

Models that are no run folders: evaluation_models.py."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from ..common.files import read_rows, write_rows
from ..common.quiet import without_bars
from ..run.build import EvaluationConfig, RunConfig, build_run, component_name, read_yaml
from ..run.cost import training_flops
from ..tasks import Cell, Task, build_task
from .any_model import table_rows
from .measuring import measure, measure_cells, validation_summary

__all__ = ["Asked", "ask", "evaluate", "fits", "load_run", "measure", "measure_cells", "save_evaluation"]

FIT = 0.99  # of every trained cell; for streams
FIT_STREAM = 0.95  # of the mean over trained distances
NAMED = 4  # cells that an error lists


@dataclass
class Asked:
    """A model that reads and answers in its task's tokens; `facts` stand in each of its rows. limit: how many tokens it can
    hold, with the `prefix` that stands before each sequence; None: any number. further: how to ask it for more, if so."""

    name: str
    model: nn.Module
    task: Task
    facts: dict
    seed: int
    options: EvaluationConfig
    limit: int | None = None
    prefix: int = 0
    further: str = ""


def fits(task: Task, validation_rows: list[dict]) -> bool:
    """Whether a run learned what it was shown: streams by the mean over trained distances, other tasks at every cell; on
    text it must do better than the frequencies of the tokens, or it learned nothing of context."""
    summary = validation_summary(validation_rows)
    if task.natural:
        return summary["nll"] < task.unigram_nats("validation")
    return summary["token_accuracy"] >= FIT_STREAM if task.paste else summary["worst_token_accuracy"] >= FIT


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
    steps = [line for line in read_rows(folder / "train.jsonl") if "lr" in line]
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
    for needed in ("run.yaml", "model.safetensors"):
        if not (folder / needed).is_file():
            raise ValueError(f"{folder} is no finished run: it holds no {needed}")
    run = build_run(read_yaml(folder / "run.yaml"))
    with without_bars():
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() and not run.train.cpu else "cpu")
    return run, build_task(run.task), model.to(device)


def asked_run(folder: str | Path, device: torch.device | None = None) -> Asked:
    """What is asked of a run folder. Raises as `load_run` does."""
    run, task, model = load_run(folder, device)
    facts = run_facts(run, task, model, Path(folder))
    return Asked(str(folder), model, task, facts, run.seed, run.evaluation, table_rows(model.config))


def ask(
    asked: Asked,
    *,
    count: int | None = None,
    splits: Iterable[str] | None = None,
    lengths: Iterable[int] | None = None,
    free_running: bool = False,
    processes=None,
) -> list[dict]:
    """Rows for every cell of some splits (its own unless given), at some lengths (all), `count` sequences each.
    free_running: also the accuracy where the model reads its own pasted tokens, not the right ones (`predict_freely`).

    Raises `ValueError` before anything is asked: for a split that the task doesn't have, lengths without a cell, and cells
    that the model can't hold, by name; free running where nothing is pasted."""
    task = asked.task
    if free_running and not task.paste:
        raise ValueError(f"free running reads pasted tokens back, and task {task.name!r} pastes none: leave it out")
    for split in splits or ():
        task.cells(split)
    mine = [split for split in splits or asked.options.splits if task.splits().get(split)]
    wanted = [
        (split, cell) for split in mine for cell in task.cells(split) if lengths is None or cell.length in lengths
    ]
    if not wanted:
        have = sorted({cell.length for split in mine for cell in task.cells(split)})
        raise ValueError(
            f"no cell of {', '.join(mine)} has one of these lengths; there are: {', '.join(map(str, have))}"
        )
    fit_on = [("validation", cell) for cell in task.cells("validation")]
    both = list(dict.fromkeys(fit_on + wanted))
    _refuse_too_long(asked, both)
    count = (asked.options if count is None else replace(asked.options, count=count)).count
    rows = measure_cells(
        asked.model, task, both, asked.seed, count, asked.options.batch_tokens, processes, free_running
    )
    fit = fits(task, rows[: len(fit_on)])
    return [asked.facts | {"fit": fit} | row for pair, row in zip(both, rows, strict=True) if pair in wanted]


def _refuse_too_long(asked: Asked, wanted: list[tuple[str, Cell]]) -> None:
    needs = lambda cell: asked.prefix + cell.length + asked.task.slots()  # noqa: E731
    long = [(split, cell) for split, cell in wanted if asked.limit is not None and needs(cell) > asked.limit]
    if not long:
        return
    named = ", ".join(f"{split} {cell} ({needs(cell):,})" for split, cell in long[:NAMED])
    more = f" and {len(long) - NAMED} more" if len(long) > NAMED else ""
    trained = any(split == "validation" for split, _ in long)
    way = (
        "choose another task, its trained cells are too long"
        if trained
        else "leave them out with --splits or --lengths"
    )
    raise ValueError(f"{asked.name} holds {asked.limit:,} tokens, and {named}{more} need more: {way}{asked.further}")


def evaluate(folder: str | Path, *, processes=None, **options) -> list[dict]:
    """`ask` a run folder. Raises `ValueError` as that does, and for a folder without a run."""
    return ask(asked_run(folder, processes.device if processes else None), processes=processes, **options)


def save_evaluation(folder: str | Path, *, processes=None, **options) -> list[dict]:
    """`evaluate`, written to the folder's results.jsonl in one piece (`keep_rows`)."""
    rows = evaluate(folder, processes=processes, **options)
    if processes is None or processes.is_main_process:
        keep_rows(Path(folder) / "results.jsonl", rows)
    return rows


def keep_rows(file: Path, rows: list[dict]) -> None:
    """Write a model's rows; what the file holds of it in other cells stays, under the new rows' facts. Whether it fits is
    what the most sequences said."""
    cell = lambda row: (row["split"], row["length"], row["distance"], row["kind"])  # noqa: E731
    new, facts = {cell(row) for row in rows}, ("run", "arm", "panel")
    every = [row | {key: rows[0][key] for key in facts} for row in read_rows(file) if cell(row) not in new] + rows
    most = max(every, key=lambda row: row["count"])  # the first of those that tie
    write_rows(file, [row | {"fit": most["fit"]} for row in every])
