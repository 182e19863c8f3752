"""Measuring a model cell by cell: `save_evaluation(folder)` reads a run folder and writes its results.jsonl."""

import contextlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from accelerate.utils import gather_object

from .budget import training_flops
from .files import read_rows, write_rows
from .metrics.functional import IGNORE, score
from .quiet import without_bars
from .run_config import RunConfig, build_run, component_name, read_yaml
from .statistics import bootstrap_ratio, wilson
from .tasks import Cell, Task, build_task, examples

FIT = 0.99  # of every trained cell; for streams
FIT_STREAM = 0.95  # of the mean over trained distances


@torch.no_grad()
def predict(model, tokens: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Predictions (N, T), aligned with the labels (-100 where nothing is scored), and nats per scored token (n,).

    Only the scored places go through the head."""
    hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state
    scored = labels[:, 1:] != IGNORE
    logits = model.lm_head(hidden[:, :-1][scored]).float()
    predictions = torch.full_like(labels, IGNORE)
    predictions[:, 1:][scored] = logits.argmax(-1)
    return predictions, torch.nn.functional.cross_entropy(logits, labels[:, 1:][scored], reduction="none")


def scores_of_cell(model, task: Task, split: str, cell: Cell, seed: int, count: int, batch_tokens: int):
    """({what is counted: (N,)}, nats per scored token (n,)) of examples 0..count-1 of a cell."""
    device, size = next(model.parameters()).device, max(1, batch_tokens // (cell.length + task.slots()))
    parts, nll = [], []
    for start in range(0, count, size):
        tokens, labels = examples(task, seed, split, cell, start, min(start + size, count))
        predictions, losses = predict(model, *(torch.from_numpy(part).to(device) for part in (tokens, labels)))
        parts.append(score(predictions.cpu().numpy(), labels, task.paste))
        nll.append(losses.double().cpu())
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}, torch.cat(nll).numpy()


def measure(model, task: Task, split: str, cell: Cell, seed: int, count: int, batch_tokens: int) -> dict:
    """The row of one cell: accuracies with intervals, nats per token, and the task's own reference points."""
    scores, nll = scores_of_cell(model, task, split, cell, seed, count, batch_tokens)
    out = {"split": split, "length": cell.length, "distance": cell.distance, "count": count}
    out |= _share("exact_match", scores["answers_correct"], scores["answers"])
    out |= _share("token_accuracy", scores["tokens_correct"], scores["tokens_scored"])
    for part in ("first", "rest") if task.paste else ():
        out |= _share(f"{part}_accuracy", scores[f"{part}_correct"], scores[f"{part}_scored"])
    out["nll"] = float(nll.mean()) if len(nll) else None
    return out | {"chance": task.chance(cell), "ceiling": task.ceiling(cell), "baselines": _baselines(task, cell)}


def _share(name: str, correct: np.ndarray, scored: np.ndarray) -> dict:
    """A share with its interval: Wilson's over sequences where each asks once, else a bootstrap over sequences. None
    where nothing is asked."""
    if scored.sum() == 0:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    if scored.max() <= 1:
        low, high = wilson(int(correct.sum()), int(scored.sum()))
    else:
        low, high = bootstrap_ratio(correct, scored)
    return {name: float(correct.sum() / scored.sum()), f"{name}_low": low, f"{name}_high": high}


@lru_cache(maxsize=4096)
def _baselines(task: Task, cell: Cell) -> dict:
    return task.baselines(cell)


def measure_cells(model, task: Task, wanted, seed: int, count: int, batch_tokens: int, processes=None) -> list[dict]:
    """`measure` over (split, cell) pairs. `processes` (an Accelerator): each takes its share, and all get all rows."""
    rank, world = (processes.process_index, processes.num_processes) if processes else (0, 1)
    with _evaluating(model):
        rows = [
            (i, measure(model, task, *wanted[i], seed, count, batch_tokens)) for i in range(rank, len(wanted), world)
        ]
    rows = gather_object(rows) if world > 1 else rows
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def validate(model, task: Task, run: RunConfig, processes=None) -> dict:
    """Means over the trained cells, and the worst cell: what training looks at (no intervals, no baselines)."""
    cells, world = task.cells("validation"), processes.num_processes if processes else 1
    parts = []
    with _evaluating(model):
        for cell in cells[processes.process_index :: world] if processes else cells:
            options = (run.seed, run.train.validation_count, run.evaluation.batch_tokens)
            scores, nll = scores_of_cell(model, task, "validation", cell, *options)
            ratio = lambda part, whole: float(part.sum() / max(1, whole.sum()))  # noqa: E731
            parts.append(
                {
                    "exact_match": ratio(scores["answers_correct"], scores["answers"]),
                    "token_accuracy": ratio(scores["tokens_correct"], scores["tokens_scored"]),
                    "nll": float(nll.mean()) if len(nll) else 0.0,
                }
            )
    return validation_summary(gather_object(parts) if world > 1 else parts)


@contextlib.contextmanager
def _evaluating(model):
    was_training = model.training
    model.eval()
    yield
    model.train(was_training)


def validation_summary(rows: list[dict]) -> dict:
    """Means over the cells, and the worst cell."""
    out = {key: float(np.mean([row[key] for row in rows])) for key in ("exact_match", "token_accuracy", "nll")}
    return out | {"worst_token_accuracy": min(row["token_accuracy"] for row in rows)}


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
