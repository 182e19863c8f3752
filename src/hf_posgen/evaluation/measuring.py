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

from ..metrics.functional import IGNORE, bootstrap_ratio, bucket_means, score, share
from ..run.build import RunConfig
from ..tasks import Cell, Task, examples

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


@torch.no_grad()
def predict_freely(model, input_ids: torch.Tensor, labels: torch.Tensor, **inputs) -> torch.Tensor:
    """Predictions (N, T) as `predict` gives them where the model reads its own pasted tokens instead of the right ones, as
    when it generates greedily; -100 where nothing is scored.

    They are a fixed point, found by asking again with the last predictions in place: the first wrong answer of a causal
    model hangs on right tokens alone, so every pass settles at least one more answer of each sequence, and a sequence is
    asked no further once nothing changes. Its greedy decoding token by token gives the same (up to ties)."""
    answers = labels != IGNORE
    predictions, _ = predict(model, input_ids, labels, **inputs)
    still = (answers & (predictions != input_ids)).any(1).nonzero().squeeze(1)
    for _ in range(int(answers.sum(1).max())):
        if not len(still):
            break
        read = torch.where(answers[still], predictions[still], input_ids[still])
        again, _ = predict(model, read, labels[still], **{name: part[still] for name, part in inputs.items()})
        moved = (answers[still] & (again != predictions[still])).any(1)
        predictions[still] = again
        still = still[moved]
    return predictions


def scores_of_cell(
    model, task: Task, split: str, cell: Cell, seed: int, count: int, batch_tokens: int, free_running: bool = False
):
    """({what is counted or summed: (N,)}, {nats, place: (n,) of each scored token}) of examples 0..count-1 of a cell,
    fewer where there are no more. free_running: also what is right where the model reads its own pasted tokens. Batches are
    halved while memory doesn't suffice; `RuntimeError` where it doesn't for one sequence."""
    tokens_at_once, length = min(batch_tokens, LOGITS // task.vocab_size), cell.length + task.slots()
    count = task.available(split, cell, count)
    size = max(1, min(count, tokens_at_once // length))
    start, sequences, tokens = 0, [], []
    while start < count:
        found = _scores_if_it_fits(
            model, task, examples(task, seed, split, cell, start, min(start + size, count)), free_running
        )
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


def _scores_if_it_fits(
    model, task: Task, parts: tuple[np.ndarray, ...], free_running: bool
) -> tuple[dict, dict] | None:
    """None where memory ran out; what the error held is let go on return."""
    try:
        return _scores(model, task, parts, free_running)
    except RuntimeError as error:
        if not should_reduce_batch_size(error):
            raise
        return None


def _scores(model, task: Task, parts: tuple[np.ndarray, ...], free_running: bool) -> tuple[dict, dict]:
    """`scores_of_cell` of one batch."""
    device, labels = next(model.parameters()).device, parts[1]
    inputs = {name: torch.from_numpy(part).to(device) for name, part in zip(task.columns, parts, strict=True)}
    predictions, losses = predict(model, **inputs)
    nats = losses.double().cpu().numpy()
    rows, places = np.nonzero(labels[:, 1:] != IGNORE)
    counted = score(predictions.cpu().numpy(), labels, task.paste) | {"nats": np.bincount(rows, nats, len(labels))}
    if free_running:
        counted["free_correct"] = score(predict_freely(model, **inputs).cpu().numpy(), labels, paste=False)[
            "tokens_correct"
        ]
    return counted, {"nats": nats, "place": parts[2][rows, places + 1] if len(parts) > 2 else places + 1}


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def measure(
    model, task: Task, split: str, cell: Cell, seed: int, count: int, batch_tokens: int, free_running: bool = False
) -> dict:
    """The row of one cell: accuracies with intervals, nats per token, and the task's own reference points."""
    scores, tokens = scores_of_cell(model, task, split, cell, seed, count, batch_tokens, free_running)
    out = {"split": split, "length": cell.length, "distance": cell.distance, "count": len(scores["answers"])}
    out |= share("exact_match", scores["answers_correct"], scores["answers"] * (not task.natural))
    out |= share("token_accuracy", scores["tokens_correct"], scores["tokens_scored"])
    if free_running:
        out |= share("free_running_accuracy", scores["free_correct"], scores["tokens_scored"])
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


def measure_cells(
    model, task: Task, wanted, seed: int, count: int, batch_tokens: int, processes=None, free_running: bool = False
) -> list[dict]:
    """`measure` over (split, cell) pairs. `processes` (an Accelerator): each takes its share, and all get all rows."""
    mine, quiet = _share_of(wanted, processes), processes is not None and not processes.is_main_process
    with _evaluating(model):  # a bar on a terminal, for the first process
        bar = tqdm(mine, desc="cells", leave=False, disable=quiet or None)
        rows = [(i, measure(model, task, *wanted[i], seed, count, batch_tokens, free_running)) for i in bar]
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
