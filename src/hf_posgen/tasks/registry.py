"""Tasks by name."""

import dataclasses

from .base import Task
from .configs import CONFIGS
from .delay_copy import DelayCopy
from .fixed_offset import FixedOffset
from .parameters import unknown

TASKS: dict[str, type[Task]] = {"fixed_offset": FixedOffset, "delay_copy": DelayCopy}


def build_task(spec: str | dict | Task) -> Task:
    """A task from a name or {"name": ..., **parameters}.

    Raises `ValueError` for an unknown name or parameter, a value of the wrong type, and parameters that can't be.
    """
    if isinstance(spec, Task):
        return spec
    name = spec.get("name") if isinstance(spec, dict) else spec
    if not isinstance(name, str):
        raise ValueError(f"a task is a name or a dict with a 'name', not {spec!r}")
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    given = {} if isinstance(spec, str) else {key: value for key, value in spec.items() if key != "name"}
    allowed = [field.name for field in dataclasses.fields(TASKS[name])]
    for key in given:
        if key not in allowed:
            raise unknown(f"parameter of task {name!r}", key, allowed)
    return TASKS[name](**given)


def resolve_task(spec: str | dict | Task) -> dict:
    """The complete spec: every effective parameter by name."""
    task = build_task(spec)
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in task.parameters.items()}
    return {"name": task.name} | plain


def config_spec(name: str, config: str | None = None, **parameters) -> dict:
    """The spec of a named configuration (None: the first), with some parameters changed."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    configs = CONFIGS[name]
    config = next(iter(configs)) if config is None else config
    if config not in configs:
        raise unknown(f"configuration of task {name!r}", config, configs)
    return {"name": name} | configs[config] | parameters
