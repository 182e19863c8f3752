"""Sequences of the evaluation splits that training holds too."""

import numpy as np

from ..core.cells import SPLITS
from ..core.examples import examples
from ..core.task import Task
from .tables import pieces

_MULTIPLIERS = np.random.default_rng(20260718).integers(2**63, size=2**16, dtype=np.uint64) * 2 + 1


def count_duplicates(task: Task, seed: int = 0, count: int = 1000, train_count: int = 10000) -> dict[str, int]:
    """{evaluation split: how many of its `count` sequences per cell are also among the `train_count` of a train cell}.

    Short sequences over few symbols repeat by chance; a data set's card states how many do. Sequences are compared by a
    64-bit fingerprint of their first array (tokens, or inputs).
    """
    trained = {cell.length: [] for cell in task.cells("train")}
    for cell in task.cells("train"):
        trained[cell.length] += [_prints(task, seed, "train", cell, *piece) for piece in pieces(cell, 0, train_count)]
    known = {length: np.unique(np.concatenate(prints)) for length, prints in trained.items()}
    found = {}
    for split in SPLITS[1:]:
        cells = task.splits().get(split, ())
        if cells:
            found[split] = sum(
                int(np.isin(_prints(task, seed, split, cell, *piece), known[cell.length]).sum())
                for cell in cells
                if cell.length in known
                for piece in pieces(cell, 0, count)
            )
    return found


def _prints(task: Task, seed: int, split: str, cell, start: int, stop: int) -> np.ndarray:
    """(stop - start,): a fingerprint of each sequence."""
    first = examples(task, seed, split, cell, start, stop)[0]
    words = np.ascontiguousarray(first).reshape(len(first), -1)
    words = words.view(np.uint32 if words.dtype == np.float32 else np.uint64).astype(np.uint64) + np.uint64(1)
    return (words * np.resize(_MULTIPLIERS, words.shape[1])).sum(1, dtype=np.uint64)
