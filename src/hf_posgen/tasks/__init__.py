"""Synthetic tasks that keep length and distance apart, and text of one's own.

For a task of one's own: `TokenTask`, `WindowTask` or `RealTask` to derive from, `parameter` for its fields, `Cell`, `grid`
and `IGNORE` to write it with, `register_task` to make it known.
"""

import importlib

from .core.cells import SPLITS, Cell, grid
from .core.examples import examples, train_cell
from .core.parameters import Numbers, parameter
from .core.real_task import RealTask
from .core.task import Task
from .core.token_task import IGNORE, TokenTask
from .core.window_task import WindowTask
from .registry import (
    TASKS,
    build_task,
    config_name,
    config_spec,
    generated_tasks,
    register_task,
    resolve_task,
    task_digest,
    task_parameters,
)

_LATER = {
    "load_task": "dataset.builder",
    "export_task": "dataset.export",
    "dataset_card": "dataset.card",
    "count_duplicates": "dataset.duplicates",
}

__all__ = [
    "IGNORE",
    "SPLITS",
    "TASKS",
    "Cell",
    "Numbers",
    "RealTask",
    "Task",
    "TokenTask",
    "WindowTask",
    "build_task",
    "config_name",
    "config_spec",
    "examples",
    "generated_tasks",
    "grid",
    "parameter",
    "register_task",
    "resolve_task",
    "task_digest",
    "task_parameters",
    "train_cell",
    *_LATER,
]


def __getattr__(name: str):
    """Import what needs `datasets` or `transformers` when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module 'hf_posgen.tasks' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
