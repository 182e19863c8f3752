"""Tasks as a `datasets` builder: prepared on disk once, or streamed; sharded by cell."""

import hashlib
import json

import datasets

from ..core.cells import SPLITS
from ..core.examples import BLOCK_TOKENS
from ..registry import build_task, code_digest, config_spec, resolve_task
from .tables import arrow_table, features, pieces, table_rows

SHARDS_PER_CELL = 16


class TaskBuilder(datasets.ArrowBasedBuilder):
    """`parameters` is the complete spec of a task and how much of it: its hash, with the generator's version and the code
    of a task from outside the package, names the cache folder, so that neither a changed default nor a changed generator
    reads what an older one wrote."""

    VERSION = datasets.Version("1.0.0")

    def __init__(self, *, parameters: dict, cache_dir: str | None = None):
        self.parameters = parameters
        self.task = build_task(parameters["task"])
        content = json.dumps(
            [parameters, self.task.version, code_digest(type(self.task)), BLOCK_TOKENS], sort_keys=True
        )
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        super().__init__(
            cache_dir=cache_dir,
            dataset_name=self.task.name,
            config_name=f"{parameters['config'] or 'custom'}-{digest}",
            hash=digest,
        )

    def _info(self):
        description = type(self.task).__doc__.split("\n")[0]
        return datasets.DatasetInfo(description=description, features=features(self.task))

    def _split_generators(self, dl_manager):
        cells = self.task.splits()
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"shards": self._shards(split), "split": split})
            for split in SPLITS
            if cells.get(split)
        ]

    def _shards(self, split: str) -> list[tuple[int, int, int]]:
        """Return (cell index, start, stop) of each shard; a list is what `num_proc` and streaming divide."""
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
    """Return a task as a `Dataset` (or `DatasetDict` without `split`; `IterableDataset` with `streaming`).

    config: a named configuration (see a task's `configs`); `parameters` change single ones. `count` sequences per cell of
    the evaluation splits, `train_count` per cell of `train`. Columns: input_ids, labels (inputs, targets where the task
    is real-valued), length, distance (null where mixed), index. The examples are those of `examples`, whatever the number
    of processes, shards or workers. Raises `ValueError` for an unknown task, configuration, parameter or split, and for a
    value that can't be.
    """
    task = build_task(config_spec(name, config, **parameters))
    check_sizes(seed=seed, count=count, train_count=train_count)
    if split is not None:
        task.cells(split)
    sizes = {"seed": seed, "count": count, "train_count": train_count}
    builder = TaskBuilder(parameters={"task": resolve_task(task), "config": config} | sizes, cache_dir=cache_dir)
    if streaming:
        return builder.as_streaming_dataset(split=split)
    builder.download_and_prepare(num_proc=num_proc)
    return builder.as_dataset(split=split)


def check_sizes(**sizes) -> None:
    """Raise `ValueError` for a seed or a number of sequences that can't be."""
    for key, value in sizes.items():
        least = 0 if key == "seed" else 1
        if type(value) is not int or value < least:
            raise ValueError(f"{key} is {value!r}; it must be a whole number of at least {least}")
