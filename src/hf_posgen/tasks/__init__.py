"""Synthetic tasks that keep length and distance apart."""

import importlib

from .core.cells import SPLITS, Cell
from .core.examples import examples, train_cell
from .core.task import Task
from .core.token_task import IGNORE, TokenTask
from .registry import CONFIGS, TASKS, build_task, config_name, config_spec, resolve_task

_LATER = {
    "load_task": "dataset.builder",
    "export_task": "dataset.export",
    "dataset_card": "dataset.card",
    "count_duplicates": "dataset.duplicates",
    "task_tokenizer": "dataset.tokenizer",
}

__all__ = [
    "CONFIGS",
    "IGNORE",
    "SPLITS",
    "TASKS",
    "Cell",
    "Task",
    "TokenTask",
    "build_task",
    "config_name",
    "config_spec",
    "examples",
    "resolve_task",
    "train_cell",
    *_LATER,
]


def __getattr__(name: str):
    """What needs `datasets` or `transformers` is imported when first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module 'hf_posgen.tasks' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
