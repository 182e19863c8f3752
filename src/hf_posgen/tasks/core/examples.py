"""Example i of a cell, whoever asks: the same in every batch, process, shard and stream."""

import hashlib
from functools import lru_cache

import numpy as np

from .cells import Cell
from .task import Task

BLOCK_TOKENS = 16384  # about so many tokens come from one generator


def block_size(length: int) -> int:
    """Examples that share a generator: part of the data's definition, like a task's `version`.

    Fewer, and the fixed cost of drawing dominates (10 µs for the generator alone); more, and a training step pays for
    examples that it doesn't use.
    """
    return min(256, max(16, BLOCK_TOKENS // length))


def examples(task: Task, seed: int, split: str, cell: Cell, start: int, stop: int) -> tuple[np.ndarray, ...]:
    """Examples start..stop-1 of a cell: tokens, labels (N, T) and what else the task's `columns` name. A function of
    (task, seed, split, cell, i) alone."""
    if not 0 <= start < stop:
        raise ValueError(f"examples {start} to {stop}: they must satisfy 0 <= start < stop")
    size = block_size(cell.length)
    blocks = [_block(task, task.version, seed, split, cell, b) for b in range(start // size, -(-stop // size))]
    first = start // size * size
    return tuple(np.concatenate(parts)[start - first : stop - first] for parts in zip(*blocks, strict=True))


@lru_cache(maxsize=16)
def _block(task: Task, version: int, seed: int, split: str, cell: Cell, block: int) -> tuple[np.ndarray, ...]:
    """One block. The latest are kept: steps that follow each other read the same block of the same cell."""
    return task.block(seed, split, cell, block, block_size(cell.length))


def train_cell(task: Task, seed: int, step: int) -> Cell:
    """The cell that training step `step` draws from, each equally likely (by a hash: cheaper than a generator)."""
    cells = _train_cells(task)
    digest = hashlib.blake2b(f"{seed}/{step}".encode(), digest_size=8).digest()
    return cells[int.from_bytes(digest) % len(cells)]


@lru_cache(maxsize=16)
def _train_cells(task: Task) -> tuple[Cell, ...]:
    return task.cells("train")
