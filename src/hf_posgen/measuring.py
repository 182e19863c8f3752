"""Measuring a model on cells of a task: answers counted, with intervals."""

import contextlib
from functools import lru_cache

import numpy as np
import torch
from accelerate.utils import DistributedType, gather_object

from .metrics.functional import IGNORE, score
from .run_config import RunConfig
from .statistics import bootstrap_ratio, wilson
from .tasks import Cell, Task, examples


@torch.no_grad()
def predict(model, tokens: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Predictions (N, T), aligned with the labels (-100 where nothing is scored), and nats per scored token (n,).

    Only the columns where some sequence is scored go through the head."""
    scored = labels[:, 1:] != IGNORE
    columns = scored.any(0).nonzero().squeeze(1)
    logits = model(input_ids=tokens, use_cache=False, logits_to_keep=columns).logits[scored[:, columns]].float()
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
    out |= _ratio("exact_match", scores["answers_correct"], scores["answers"])
    out |= _ratio("token_accuracy", scores["tokens_correct"], scores["tokens_scored"])
    for part in ("first", "rest") if task.paste else ():
        out |= _ratio(f"{part}_accuracy", scores[f"{part}_correct"], scores[f"{part}_scored"])
    out["nll"] = float(nll.mean()) if len(nll) else None
    return out | {"chance": task.chance(cell), "ceiling": task.ceiling(cell), "baselines": _baselines(task, cell)}


def _ratio(name: str, correct: np.ndarray, scored: np.ndarray) -> dict:
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
    with _evaluating(model):
        rows = [(i, measure(model, task, *wanted[i], seed, count, batch_tokens)) for i in _share_of(wanted, processes)]
    return [row for _, row in sorted(_gathered(rows, processes), key=lambda pair: pair[0])]


def _share_of(items, processes) -> range:
    """Which items this process takes. Where weights are sharded, every process needs every other: all take all."""
    if processes is None or processes.distributed_type == DistributedType.FSDP:
        return range(len(items))
    return range(processes.process_index, len(items), processes.num_processes)


def _gathered(parts: list, processes) -> list:
    if processes is None or processes.num_processes == 1 or processes.distributed_type == DistributedType.FSDP:
        return parts
    return gather_object(parts)


def validate(model, task: Task, run: RunConfig, processes=None) -> dict:
    """Means over the trained cells, and the worst cell: what training looks at (no intervals, no baselines)."""
    cells, parts = task.cells("validation"), []
    with _evaluating(model):
        for cell in [cells[i] for i in _share_of(cells, processes)]:
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
    return validation_summary(_gathered(parts, processes))


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
