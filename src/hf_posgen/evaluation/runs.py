"""Run folders as evaluation targets, and the rows that are kept in them."""

from pathlib import Path

import torch

from ..common.files import read_rows, write_rows
from ..common.quiet import without_bars
from ..run.build import RunConfig
from ..run.components import component_name, table_rows
from ..run.cost import training_flops
from ..run.folder import RunFolder
from ..tasks import Task
from .cells import EvaluationTarget, evaluate_target, task_facts, wanted_cells
from .identity import describe_difference, digest_of, model_digest
from .measuring import Measurement

RUN_NAMES = ("run", "arm", "panel")  # what a row calls its run: all rows of a file say the same


def run_facts(run: RunConfig, task: Task, model, folder: Path) -> dict:
    """Return what every row of a run holds of the run."""
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
    }


def run_target(
    name: str, run: RunConfig, model, folder: Path, digest: str, revision: str | None = None
) -> EvaluationTarget:
    """Return the evaluation target of a run whose model is loaded. folder: where its run.yaml and train.jsonl lie. digest:
    the model's (`model_digest`)."""
    task = run.built_task
    digest = digest_of(digest, run.imports) if run.imports else digest
    facts = run_facts(run, task, model, folder) | {"revision": revision, "data_seed": run.seed, "model_digest": digest}
    facts["seen_in"] = "training"
    measurement = Measurement(model, task, run.seed, run.evaluation.count, run.evaluation.batch_tokens)
    limit = table_rows(model.config.to_dict())
    about = {"model": name, "revision": revision, "model_digest": digest, "task": run.task, "prompt": "symbols"}
    about["data_seed"] = run.seed
    about |= {"limit": limit, "symbols_are": "own"}
    return EvaluationTarget(name, measurement, facts, about, run.evaluation.splits, limit)


def load_run(folder: str | Path, device: torch.device | None = None):
    """Return (run, task, model in evaluation mode) of a finished run folder. Raises `ValueError` for another folder."""
    from transformers import AutoModelForCausalLM

    RunFolder(folder).require_finished()
    run = RunFolder(folder).run()
    with without_bars():
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() and not run.train.cpu else "cpu")
    return run, run.built_task, model.to(device)


def open_run(folder: str | Path, device: torch.device | None = None) -> EvaluationTarget:
    """Return the evaluation target of a finished run folder. Raises `ValueError` for another folder."""
    run, _, model = load_run(folder, device)
    digest = model_digest(model, RunFolder(folder).model_config)
    return run_target(str(folder), run, model, Path(folder), digest)


def evaluate(folder: str | Path, *, processes=None, **options) -> list[dict]:
    """Return the rows of a run folder; `options` as for `evaluate_target`. Raises `ValueError` as that does, and for a
    folder without a run."""
    target = open_run(folder, processes.device if processes else None)
    return evaluate_target(target, processes=processes, **options)


def save_evaluation(folder: str | Path, *, processes=None, **options) -> list[dict]:
    """Return the rows of `evaluate`, written to the folder's results.jsonl in one piece (`keep_rows`). Raises `ValueError`
    where rows of other weights would stay there."""
    target, file = open_run(folder, processes.device if processes else None), RunFolder(folder).results
    refuse_mixing(file, target, options.get("splits"), options.get("lengths"))
    rows = evaluate_target(target, processes=processes, **options)
    if processes is None or processes.is_main_process:
        keep_rows(file, rows)
    return rows


def refuse_mixing(file: Path, target: EvaluationTarget, splits=None, lengths=None) -> None:
    """Raise `ValueError`, before anything is measured, where rows of another model, task or prompt would stay in a file
    beside those of some cells of a target."""
    new = {
        (split, cell.length, cell.distance, target.task.kind) for split, cell in wanted_cells(target, splits, lengths)
    }
    staying = [row for row in read_rows(file) if _cell_of(row) not in new]
    if difference := describe_difference(staying, target.facts):
        raise ValueError(
            f"{file} holds rows of another evaluation: {difference}: choose another folder with -o, or remove the file"
        )


def keep_rows(file: Path, rows: list[dict]) -> None:
    """Write a model's rows; what the file holds of it in other cells stays, under the new rows' names. Whether the model
    fits is taken from the rows of the most sequences."""
    new = {_cell_of(row) for row in rows}
    names = {key: rows[0][key] for key in RUN_NAMES}
    rows = [row | names for row in read_rows(file) if _cell_of(row) not in new] + rows
    most = max(rows, key=lambda row: row["count"])  # the first of those that tie
    write_rows(file, [row | {"fit": most["fit"]} for row in rows])


def _cell_of(row: dict) -> tuple:
    return row["split"], row["length"], row["distance"], row["kind"]
