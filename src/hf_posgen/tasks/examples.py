"""Example i of a cell, whoever asks: the same in every batch, process, shard and stream."""

import zlib

import numpy as np

from .base import Task
from .cells import Cell

BLOCK = 32  # examples drawn from one generator; part of the data's definition (raise a task's `version` to change it)


def examples(task: Task, seed: int, split: str, cell: Cell, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples start..stop-1 of a cell: tokens and labels (N, T). A function of (task, seed, split, cell, i) alone."""
    blocks = [_block(task, seed, split, cell, b) for b in range(start // BLOCK, -(-stop // BLOCK))]
    first = start // BLOCK * BLOCK
    tokens, labels = (np.concatenate([block[part] for block in blocks]) for part in (0, 1))
    return tokens[start - first : stop - first], labels[start - first : stop - first]


def _block(task: Task, seed: int, split: str, cell: Cell, block: int) -> tuple[np.ndarray, np.ndarray]:
    distance = 0 if cell.distance is None else cell.distance + 1
    key = [seed, zlib.crc32(split.encode()), cell.length, distance, block]
    return task.sample(np.random.default_rng(key), BLOCK, cell)


def train_cell(task: Task, seed: int, step: int) -> Cell:
    """The cell that training step `step` draws from, each equally likely."""
    cells = task.cells("train")
    return cells[np.random.default_rng([seed, zlib.crc32(b"schedule"), step]).integers(len(cells))]
