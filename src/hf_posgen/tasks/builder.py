"""Tasks as a `datasets` builder: prepared on disk once, or streamed; sharded by cell."""

import hashlib
import json

import datasets
import numpy as np
import pyarrow as pa

from .base import Task
from .cells import SPLITS, Cell
from .examples import BLOCK_TOKENS, block_size, examples
from .registry import build_task, config_spec, resolve_task

SHARDS_PER_CELL = 16
TABLE_TOKENS = 2**18  # of one Arrow table: what is in memory at a time
FEATURES = datasets.Features(
    {
        "input_ids": datasets.List(datasets.Value("int64")),
        "labels": datasets.List(datasets.Value("int64")),
        "length": datasets.Value("int64"),
        "distance": datasets.Value("int64"),
        "index": datasets.Value("int64"),
    }
)


def arrow_table(task: Task, seed: int, split: str, cell: Cell, start: int, stop: int) -> pa.Table:
    """Examples start..stop-1 of a cell; a mixed distance is stored as null."""
    tokens, labels = examples(task, seed, split, cell, start, stop)
    n = stop - start
    lists = [_lists(tokens), _lists(labels)]
    constants = [pa.array([cell.length] * n, pa.int64()), pa.array([cell.distance] * n, pa.int64())]
    return pa.table([*lists, *constants, pa.array(np.arange(start, stop))], names=list(FEATURES))


def _lists(array_NT: np.ndarray) -> pa.Array:
    n, t = array_NT.shape
    return pa.ListArray.from_arrays(pa.array(np.arange(0, (n + 1) * t, t, dtype=np.int32)), pa.array(array_NT.ravel()))


class TaskBuilder(datasets.ArrowBasedBuilder):
    """`parameters` is the complete spec of a task and how much of it: its hash, with the generator's version, names the
    cache folder."""

    VERSION = datasets.Version("1.0.0")

    def __init__(self, *, parameters: dict, cache_dir: str | None = None):
        self.parameters = parameters
        self.task = build_task(parameters["task"])
        content = json.dumps([parameters, self.task.version, BLOCK_TOKENS], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        super().__init__(
            cache_dir=cache_dir,
            dataset_name=self.task.name,
            config_name=f"{parameters['config'] or 'custom'}-{digest}",
            hash=digest,
        )

    def _info(self):
        return datasets.DatasetInfo(description=type(self.task).__doc__.split("\n")[0], features=FEATURES)

    def _split_generators(self, dl_manager):
        mine = self.task.splits()
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"shards": self._shards(split), "split": split})
            for split in SPLITS
            if mine.get(split)
        ]

    def _shards(self, split: str) -> list[tuple[int, int, int]]:
        """(cell index, start, stop) of each shard; a list is what `num_proc` and streaming divide."""
        count = self.parameters["train_count"] if split == "train" else self.parameters["count"]
        shards = []
        for number, cell in enumerate(self.task.cells(split)):
            rows = table_rows(cell)
            size = rows * -(-count // (SHARDS_PER_CELL * rows))
            shards += [(number, start, min(start + size, count)) for start in range(0, count, size)]
        return shards

    def _generate_tables(self, shards, split):
        cells, seed = self.task.cells(split), self.parameters["seed"]
        for number, (cell, start, stop) in enumerate(shards):
            for piece, (first, last) in enumerate(pieces(cells[cell], start, stop)):
                yield datasets.builder.Key(number, piece), arrow_table(self.task, seed, split, cells[cell], first, last)


def table_rows(cell: Cell) -> int:
    """Rows of one Arrow table: whole blocks of examples."""
    block = block_size(cell.length)
    return block * max(1, TABLE_TOKENS // (cell.length * block))


def pieces(cell: Cell, start: int, stop: int) -> list[tuple[int, int]]:
    """start..stop cut into the rows of Arrow tables."""
    rows = table_rows(cell)
    return [(at, min(at + rows, stop)) for at in range(start, stop, rows)]


def load_task(
    name: str,
    config: str | None = None,
    *,
    split: str | None = None,
    streaming: bool = False,
    seed: int = 0,
    count: int = 1000,
    train_count: int = 10000,
    num_proc: int | None = None,
    cache_dir: str | None = None,
    **parameters,
):
    """A task as a `Dataset` (or `DatasetDict`, `IterableDataset` with `streaming`).

    config: a named configuration; `parameters` change single ones. `count` sequences per cell of the evaluation splits,
    `train_count` per cell of `train`. Columns: input_ids, labels, length, distance (null where mixed), index.
    Raises `ValueError` for an unknown task, configuration, parameter or split.
    """
    spec = resolve_task(config_spec(name, config, **parameters))
    for key, value in {"count": count, "train_count": train_count, "seed": seed}.items():
        if not isinstance(value, int) or value < (0 if key == "seed" else 1):
            raise ValueError(f"{key} is {value!r}; it must be a whole number of at least {0 if key == 'seed' else 1}")
    if split is not None:
        build_task(spec).cells(split)
    parameters = {"task": spec, "config": config, "seed": seed, "count": count, "train_count": train_count}
    builder = TaskBuilder(parameters=parameters, cache_dir=cache_dir)
    if streaming:
        return builder.as_streaming_dataset(split=split)
    builder.download_and_prepare(num_proc=num_proc)
    return builder.as_dataset(split=split)
