"""Synthetic tasks that keep length and distance apart."""

import importlib

from .base import Task
from .cells import SPLITS, Cell
from .examples import examples, train_cell
from .registry import CONFIGS, TASKS, build_task, config_name, config_spec, resolve_task
from .token_task import IGNORE, TokenTask

_LATER = {
    "load_task": "builder",
    "export_task": "export",
    "dataset_card": "card",
    "count_duplicates": "duplicates",
    "task_tokenizer": "tokenizer",
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
