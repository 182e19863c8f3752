"""Measuring a model on cells of a task: answers counted, with intervals."""

import contextlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from accelerate.utils import DistributedType, gather_object
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from torch import nn
from tqdm.auto import tqdm

from ..run.schema import within
from ..tasks import Cell, Task, examples
from .measures import chance_of_answers, describe_infinite, measures, strict
from .scoring import NotANumber, Scores, score_batch

LOGITS = 2**27  # at most so many at once, however large the vocabulary (longer rows stay whole)
CHANCE_COUNT = 64  # sequences whose answers are counted for the chance of a whole one
LONGEST_PROBLEM = 300  # characters of an error that a row holds


class NoMemory(RuntimeError):
    """Memory doesn't suffice for a single sequence."""


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
            within(1, None, f"evaluation.{name}", getattr(self, name))

    def batch(self, split: str, cell: Cell, start: int, stop: int) -> dict[str, np.ndarray]:
        """Return examples start..stop-1 of a cell, {column of the task: (N, T)}."""
        arrays = examples(self.task, self.seed, split, cell, start, stop)
        return dict(zip(self.task.columns, arrays, strict=True))

    def scores(self, split: str, cell: Cell) -> Scores:
        """Return the scores of examples 0..count-1 of a cell, fewer where there are no more. Batches are halved while
        memory doesn't suffice. Raises `NoMemory` where it doesn't for one sequence."""
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
                raise NoMemory(f"memory doesn't suffice for one sequence of {length:,} tokens ({cell})")
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
        """Return the row of one cell: accuracies with intervals, nats per token, and the task's own reference points.

        A cell that can't be measured has a row as well: its `problem` says why, and its measures are None."""
        problem, whole = None, None
        try:
            scores = self.scores(split, cell)
            few = self.task.available(split, cell, min(self.count, CHANCE_COUNT))
            labels = self.batch(split, cell, 0, few)["labels"]
            whole = chance_of_answers(self.task.chance(cell), labels, self.task.paste)
        except Exception as error:  # whatever it is, an hour's other cells must not be lost with this one
            scores, problem = Scores.of_nothing(self.task.paste), _sentence(error)
        row = {"split": split, "length": cell.length, "distance": cell.distance}
        row |= {"count": len(scores.sequences["answers"])} | measures(self.task, scores, self.free_running)
        row |= {"chance": self.task.chance(cell), "exact_match_chance": whole, "ceiling": self.task.ceiling(cell)}
        row["baselines"] = _baselines(self.task, cell)
        return strict(row) | {"problem": problem or describe_infinite(row)}

    def rows(self, cells: list[tuple[str, Cell]], processes=None) -> list[dict]:
        """Return the row of every (split, cell), in order. processes (an Accelerator): each takes its share, and all get
        all rows. Raises `RuntimeError` where no cell at all could be measured."""
        own, quiet = share_of(cells, processes), processes is not None and not processes.is_main_process
        with evaluating(self.model):  # a bar on a terminal, for the first process
            bar = tqdm(own, desc="cells", leave=False, disable=quiet or None)
            rows = [(i, self.row(*cells[i])) for i in bar]
        rows = [row for _, row in sorted(gathered(rows, processes), key=lambda pair: pair[0])]
        if rows and all(row["count"] == 0 for row in rows):
            raise RuntimeError(f"no cell could be measured: {rows[0]['problem']}")
        return rows


@lru_cache(maxsize=4096)
def _baselines(task: Task, cell: Cell) -> dict:
    return task.baselines(cell)


def share_of(items, processes) -> range:
    """Return which items this process takes. Where weights are sharded, every process needs every other: all take all."""
    if processes is None or processes.distributed_type == DistributedType.FSDP:
        return range(len(items))
    return range(processes.process_index, len(items), processes.num_processes)


def gathered(items: list, processes) -> list:
    if processes is None or processes.num_processes == 1 or processes.distributed_type == DistributedType.FSDP:
        return items
    return gather_object(items)


@contextlib.contextmanager
def evaluating(model: nn.Module):
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def _sentence(error: Exception) -> str:
    """Return an error in one line, with its type where the message is not one of ours."""
    text = " ".join(str(error).split())[:LONGEST_PROBLEM]
    return text if isinstance(error, NotANumber | NoMemory) else f"{type(error).__name__}: {text}"
