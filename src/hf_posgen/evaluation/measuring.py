"""Measuring a model on cells of a task: answers counted, with intervals."""

import contextlib
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from accelerate.utils import DistributedType, gather_object
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from torch import nn
from tqdm.auto import tqdm

from ..metrics.functional import bootstrap_ratio, bucket_means, share
from ..run.schema import RunConfig, at_least
from ..tasks import Cell, Task, examples
from .scoring import Scores, score_batch

LOGITS = 2**27  # at most so many at once, however large the vocabulary (longer rows stay whole)
RATIOS = {  # what validation shows: (counted, of how many)
    "exact_match": ("answers_correct", "answers"),
    "token_accuracy": ("tokens_correct", "tokens_scored"),
    "nll": ("nats", "tokens_scored"),
}


@dataclass(frozen=True)
class Measurement:
    """A model measured on a task: `count` sequences of each cell, drawn with `seed`, at most `batch_tokens` tokens of them
    at once.

    free_running: also where the model reads its own pasted tokens instead of the right ones (`predict_freely`). Raises
    `ValueError` for a count or batch of nothing."""

    model: nn.Module
    task: Task
    seed: int
    count: int
    batch_tokens: int
    free_running: bool = False

    def __post_init__(self):
        for name in ("count", "batch_tokens"):
            at_least(1, f"evaluation.{name}", getattr(self, name))

    def batch(self, split: str, cell: Cell, start: int, stop: int) -> dict[str, np.ndarray]:
        """Return examples start..stop-1 of a cell, {column of the task: (N, T)}."""
        arrays = examples(self.task, self.seed, split, cell, start, stop)
        return dict(zip(self.task.columns, arrays, strict=True))

    def scores(self, split: str, cell: Cell) -> Scores:
        """Return the scores of examples 0..count-1 of a cell, fewer where there are no more. Batches are halved while
        memory doesn't suffice. Raises `RuntimeError` where it doesn't for one sequence."""
        length, count = cell.length + self.task.slots(), self.task.available(split, cell, self.count)
        size = min(self.batch_tokens, LOGITS // self.task.vocab_size) // length
        size, start, parts = max(1, min(count, size)), 0, []
        while start < count:
            batch = self.batch(split, cell, start, min(start + size, count))
            scores = self._scores_if_it_fits(batch)
            if scores is not None:
                parts.append(scores)
                start += size
            elif size > 1:
                size //= 2
                clear_device_cache(garbage_collection=True)
            else:
                raise RuntimeError(f"memory doesn't suffice for one sequence of {length:,} tokens ({cell})")
        return Scores.concatenate(parts)

    def _scores_if_it_fits(self, batch: dict[str, np.ndarray]) -> Scores | None:
        """Return None where memory ran out; what the error held is let go on return."""
        try:
            return score_batch(self.model, batch, self.task.paste, self.free_running)
        except RuntimeError as error:
            if not should_reduce_batch_size(error):
                raise
            return None

    def row(self, split: str, cell: Cell) -> dict:
        """Return the row of one cell: accuracies with intervals, nats per token, and the task's own reference points."""
        task, scores = self.task, self.scores(split, cell)
        counts = scores.sequences
        row = {"split": split, "length": cell.length, "distance": cell.distance, "count": len(counts["answers"])}
        row |= share("exact_match", counts["answers_correct"], counts["answers"] * (not task.natural))
        row |= share("token_accuracy", counts["tokens_correct"], counts["tokens_scored"])
        if self.free_running:
            row |= share("free_running_accuracy", counts["free_correct"], counts["tokens_scored"])
        for part in ("first", "rest") if task.paste else ():
            row |= share(f"{part}_accuracy", counts[f"{part}_correct"], counts[f"{part}_scored"])
        row["nll"] = float(scores.nats.mean()) if len(scores.nats) else None
        row |= _perplexity(task, scores) if task.natural else {}
        return row | {"chance": task.chance(cell), "ceiling": task.ceiling(cell), "baselines": _baselines(task, cell)}

    def rows(self, cells: list[tuple[str, Cell]], processes=None) -> list[dict]:
        """Return the row of every (split, cell), in order. processes (an Accelerator): each takes its share, and all get
        all rows."""
        own, quiet = _share_of(cells, processes), processes is not None and not processes.is_main_process
        with _evaluating(self.model):  # a bar on a terminal, for the first process
            bar = tqdm(own, desc="cells", leave=False, disable=quiet or None)
            rows = [(i, self.row(*cells[i])) for i in bar]
        return [row for _, row in sorted(_gathered(rows, processes), key=lambda pair: pair[0])]


def _perplexity(task: Task, scores: Scores) -> dict:
    """Return perplexity with a bootstrap interval over windows, and nats by how many tokens stand before."""
    ends = bootstrap_ratio(scores.sequences["nats"], scores.sequences["tokens_scored"])
    means = pd.DataFrame(bucket_means(scores.place, scores.nats, task.bucket))
    perplexity = map(math.exp, (scores.nats.mean(), *ends))
    named = dict(zip(("perplexity", "perplexity_low", "perplexity_high"), perplexity, strict=True))
    return named | {"positions": means[means["count"] > 0].to_dict("records")}


@lru_cache(maxsize=4096)
def _baselines(task: Task, cell: Cell) -> dict:
    return task.baselines(cell)


def validate(model: nn.Module, task: Task, run: RunConfig, processes=None) -> dict:
    """Return the means over the trained cells, and the worst cell: what training looks at (no intervals, no baselines)."""
    measurement = Measurement(model, task, run.seed, run.train.validation_count, run.evaluation.batch_tokens)
    cells, rows = task.cells("validation"), []
    with _evaluating(model):
        for i in _share_of(cells, processes):
            counts = measurement.scores("validation", cells[i]).sequences
            row = {key: float(counts[a].sum() / max(1, counts[b].sum())) for key, (a, b) in RATIOS.items()}
            rows.append(row | ({"exact_match": None, "perplexity": math.exp(row["nll"])} if task.natural else {}))
    return validation_summary(_gathered(rows, processes))


def validation_summary(rows: list[dict]) -> dict:
    """Return the means over the cells, and the worst cell."""
    keys = [key for key in (*RATIOS, "perplexity") if rows[0].get(key) is not None]
    summary = {key: float(np.mean([row[key] for row in rows])) for key in keys}
    return summary | {"worst_token_accuracy": min(row["token_accuracy"] for row in rows)}


def _share_of(items, processes) -> range:
    """Return which items this process takes. Where weights are sharded, every process needs every other: all take all."""
    if processes is None or processes.distributed_type == DistributedType.FSDP:
        return range(len(items))
    return range(processes.process_index, len(items), processes.num_processes)


def _gathered(items: list, processes) -> list:
    if processes is None or processes.num_processes == 1 or processes.distributed_type == DistributedType.FSDP:
        return items
    return gather_object(items)


@contextlib.contextmanager
def _evaluating(model: nn.Module):
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
