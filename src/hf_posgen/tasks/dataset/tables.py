"""Examples as Arrow tables: what the builder prepares, streams and exports."""

import datasets
import numpy as np
import pyarrow as pa

from ..core.cells import Cell
from ..core.examples import block_size, examples
from ..core.task import Task

TABLE_TOKENS = 2**18  # of one table: what is in memory at a time


def features(task: Task) -> datasets.Features:
    """The columns of a task's data sets."""
    whole, real = datasets.Value("int64"), datasets.Value("float32")
    kinds = dict.fromkeys(task.columns, datasets.List(real if task.continuous else whole))
    if task.continuous:
        kinds["inputs"] = datasets.List(datasets.List(real))
    return datasets.Features(kinds | dict.fromkeys(("length", "distance", "index"), whole))


def arrow_table(task: Task, seed: int, split: str, cell: Cell, start: int, stop: int) -> pa.Table:
    """Examples start..stop-1 of a cell; a mixed distance is stored as null."""
    n = stop - start
    return pa.Table.from_arrays(
        [
            *map(nested, examples(task, seed, split, cell, start, stop)),
            pa.array(np.full(n, cell.length)),
            pa.nulls(n, pa.int64()) if cell.distance is None else pa.array(np.full(n, cell.distance)),
            pa.array(np.arange(start, stop)),
        ],
        schema=features(task).arrow_schema,
    )


def nested(array: np.ndarray) -> pa.Array:
    """An array of any number of axes as lists of lists."""
    values = pa.array(array.ravel())
    for axis in range(array.ndim - 1, 0, -1):
        rows, size = int(np.prod(array.shape[:axis])), array.shape[axis]
        values = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * size), values)
    return values


def table_rows(cell: Cell) -> int:
    """Rows of one table: whole blocks of examples."""
    block = block_size(cell.length)
    return block * max(1, TABLE_TOKENS // (cell.length * block))


def pieces(cell: Cell, start: int, stop: int) -> list[tuple[int, int]]:
    """start..stop cut into the rows of tables."""
    rows = table_rows(cell)
    return [(at, min(at + rows, stop)) for at in range(start, stop, rows)]
