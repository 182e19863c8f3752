"""The manifest of an exported configuration: everything its card says of it, in a file beside its data.

A card is a function of manifests, so a data set's card can be rendered anew wherever they lie: also for configurations that
were exported elsewhere, by another version.
"""

import dataclasses
import json
from dataclasses import dataclass, field

from ..core.cells import SPLITS
from ..core.task import Task
from ..registry import comes_from_outside, resolve_task

MANIFEST = "manifest.json"


@dataclass
class Manifest:
    """One configuration of a data set.

    task: the complete spec.
    splits: per split its cells, lengths, distances (in tokens), rows and, where it was counted, how many are `in_train`
        too.
    reference: what can be known at one cell of `test`, and what simple strategies reach there.
    vocabulary: how many token ids there are, the data symbols first; None for real numbers.
    outside: the module and class that draw the sequences, where these are no part of hf_posgen.
    files: what was written: split, file, rows, bytes, sha256."""

    task: dict
    seed: int
    count: int
    train_count: int
    columns: list[str]
    continuous: bool
    splits: dict[str, dict]
    reference: dict
    vocabulary: dict | None
    outside: str = ""
    files: list[dict] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.task["name"]

    def text(self) -> str:
        """Return the text of the file."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False) + "\n"


def describe(task: Task, seed: int = 0, count: int = 1000, train_count: int = 10000) -> Manifest:
    """Return the manifest of a configuration of which nothing is written yet."""
    filled = task.splits()
    cell = task.cells("test")[0]
    vocabulary = None
    if not task.continuous:
        control = list(task.vocabulary[task.data_symbols :])
        vocabulary = {"size": task.vocab_size, "data_symbols": task.data_symbols, "control": control}
    return Manifest(
        task=resolve_task(task),
        seed=seed,
        count=count,
        train_count=train_count,
        columns=list(task.columns),
        continuous=task.continuous,
        splits={
            split: _split(task, split, train_count if split == "train" else count)
            for split in SPLITS
            if filled.get(split)
        },
        reference={
            "cell": str(cell),
            "values": {"chance": task.chance(cell), "ceiling": task.ceiling(cell)} | task.baselines(cell),
        },
        vocabulary=vocabulary,
        outside=f"{type(task).__module__}.{type(task).__qualname__}" if comes_from_outside(type(task)) else "",
    )


def _split(task: Task, split: str, per_cell: int) -> dict:
    cells = task.cells(split)
    return {
        "cells": len(cells),
        "lengths": sorted({cell.length for cell in cells}),
        "distances": sorted({cell.distance for cell in cells if cell.distance is not None}),
        "rows": per_cell * len(cells),
        "in_train": None,
    }


def read_manifest(text: str, source: str) -> Manifest:
    """Return the manifest that a file holds; keys that another version added are left out.

    source: what to call the file in the `ValueError` for a text that holds none."""
    try:
        tree = json.loads(text)
        known = {one.name: tree[one.name] for one in dataclasses.fields(Manifest)}
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{source} is no manifest of an exported configuration ({error})") from None
    return Manifest(**known)
