"""Measuring a model on cells of a task: answers counted, with intervals."""

import contextlib
import math
from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from accelerate.utils import DistributedType, gather_object
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from tqdm.auto import tqdm

from .metrics.functional import IGNORE, bootstrap_ratio, bucket_means, score, share
from .run_config import RunConfig
from .tasks import Cell, Task, examples

LOGITS = 2**27  # at most so many at once, however large the vocabulary (longer rows stay whole)


@torch.no_grad()
def predict(model, input_ids: torch.Tensor, labels: torch.Tensor, **inputs) -> tuple[torch.Tensor, torch.Tensor]:
    """Predictions (N, T), aligned with the labels (-100 where nothing is scored), and nats per scored token (n,).

    Only the columns where some sequence is scored go through the head."""
    scored = labels[:, 1:] != IGNORE
    columns = scored.any(0).nonzero().squeeze(1)
    output = model(input_ids=input_ids, use_cache=False, logits_to_keep=columns, **inputs)
    logits = output.logits[scored[:, columns]].float()
    predictions = torch.full_like(labels, IGNORE)
    predictions[:, 1:][scored] = logits.argmax(-1)
    return predictions, torch.nn.functional.cross_entropy(logits, labels[:, 1:][scored], reduction="none")


def scores_of_cell(model, task: Task, split: str, cell: Cell, seed: int, count: int, batch_tokens: int):
    """({what is counted or summed: (N,)}, {nats, place: (n,) of each scored token}) of examples 0..count-1 of a cell,
    fewer where there are no more. Batches are halved while memory doesn't suffice; `RuntimeError` where it doesn't for one
    sequence."""
    tokens_at_once, length = min(batch_tokens, LOGITS // task.vocab_size), cell.length + task.slots()
    count = task.available(split, cell, count)
    size = max(1, min(count, tokens_at_once // length))
    start, sequences, tokens = 0, [], []
    while start < count:
        found = _scores_if_it_fits(model, task, examples(task, seed, split, cell, start, min(start + size, count)))
        if found is None and size == 1:
            raise RuntimeError(f"memory doesn't suffice for one sequence of {length:,} tokens ({cell})")
        if found is None:
            size //= 2
            clear_device_cache(garbage_collection=True)
            continue
        sequences.append(found[0])
        tokens.append(found[1])
        start += size
    return _joined(sequences), _joined(tokens)


def _scores_if_it_fits(model, task: Task, parts: tuple[np.ndarray, ...]) -> tuple[dict, dict] | None:
    """None where memory ran out; what the error held is let go on return."""
    try:
        return _scores(model, task, parts)
    except RuntimeError as error:
        if not should_reduce_batch_size(error):
            raise
        return None


def _scores(model, task: Task, parts: tuple[np.ndarray, ...]) -> tuple[dict, dict]:
    """`scores_of_cell` of one batch."""
    device, labels = next(model.parameters()).device, parts[1]
    inputs = {name: torch.from_numpy(part).to(device) for name, part in zip(task.columns, parts, strict=True)}
    predictions, losses = predict(model, **inputs)
    nats = losses.double().cpu().numpy()
    rows, places = np.nonzero(labels[:, 1:] != IGNORE)
    counted = score(predictions.cpu().numpy(), labels, task.paste) | {"nats": np.bincount(rows, nats, len(labels))}
    return counted, {"nats": nats, "place": parts[2][rows, places + 1] if len(parts) > 2 else places + 1}


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def measure(model, task: Task, split: str, cell: Cell, seed: int, count: int, batch_tokens: int) -> dict:
    """The row of one cell: accuracies with intervals, nats per token, and the task's own reference points."""
    scores, tokens = scores_of_cell(model, task, split, cell, seed, count, batch_tokens)
    out = {"split": split, "length": cell.length, "distance": cell.distance, "count": len(scores["answers"])}
    out |= share("exact_match", scores["answers_correct"], scores["answers"] * (not task.natural))
    out |= share("token_accuracy", scores["tokens_correct"], scores["tokens_scored"])
    for part in ("first", "rest") if task.paste else ():
        out |= share(f"{part}_accuracy", scores[f"{part}_correct"], scores[f"{part}_scored"])
    out["nll"] = float(tokens["nats"].mean()) if len(tokens["nats"]) else None
    out |= _perplexity(task, scores, tokens) if task.natural else {}
    return out | {"chance": task.chance(cell), "ceiling": task.ceiling(cell), "baselines": _baselines(task, cell)}


def _perplexity(task: Task, scores: dict, tokens: dict) -> dict:
    """Perplexity with a bootstrap interval over windows, and nats by how many tokens stand before."""
    ends = bootstrap_ratio(scores["nats"], scores["tokens_scored"])
    means = pd.DataFrame(bucket_means(tokens["place"], tokens["nats"], task.bucket))
    perplexity = map(math.exp, (tokens["nats"].mean(), *ends))
    named = dict(zip(("perplexity", "perplexity_low", "perplexity_high"), perplexity, strict=True))
    return named | {"positions": means[means["count"] > 0].to_dict("records")}


@lru_cache(maxsize=4096)
def _baselines(task: Task, cell: Cell) -> dict:
    return task.baselines(cell)


def measure_cells(model, task: Task, wanted, seed: int, count: int, batch_tokens: int, processes=None) -> list[dict]:
    """`measure` over (split, cell) pairs. `processes` (an Accelerator): each takes its share, and all get all rows."""
    mine, quiet = _share_of(wanted, processes), processes is not None and not processes.is_main_process
    with _evaluating(model):  # a bar on a terminal, for the first process
        bar = tqdm(mine, desc="cells", leave=False, disable=quiet or None)
        rows = [(i, measure(model, task, *wanted[i], seed, count, batch_tokens)) for i in bar]
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
            scores, _ = scores_of_cell(model, task, "validation", cell, *options)
            ratios = {
                "exact_match": ("answers_correct", "answers"),
                "token_accuracy": ("tokens_correct", "tokens_scored"),
                "nll": ("nats", "tokens_scored"),
            }
            mine = {key: float(scores[a].sum() / max(1, scores[b].sum())) for key, (a, b) in ratios.items()}
            parts.append(mine | ({"exact_match": None, "perplexity": math.exp(mine["nll"])} if task.natural else {}))
    return validation_summary(_gathered(parts, processes))


@contextlib.contextmanager
def _evaluating(model):
    was_training = model.training
    model.eval()
    yield
    model.train(was_training)


def validation_summary(rows: list[dict]) -> dict:
    """Means over the cells, and the worst cell."""
    keys = ("exact_match", "token_accuracy", "nll", "perplexity")
    keys = [key for key in keys if rows[0].get(key) is not None]
    out = {key: float(np.mean([row[key] for row in rows])) for key in keys}
    return out | {"worst_token_accuracy": min(row["token_accuracy"] for row in rows)}
