"""Tasks by name, and the named configurations of each."""

import dataclasses
import difflib
import typing

from .base import Task
from .delay_copy import DelayCopy
from .fixed_offset import FixedOffset

TASKS: dict[str, type[Task]] = {"fixed_offset": FixedOffset, "delay_copy": DelayCopy}

_PAPER = {"symbols": 128, "copied": 10, "window": 256, "unreachable": "scored", "test_distances": tuple(range(1, 121))}

# Named configurations for `load_task(name, config)`; the first of a task is its default.
CONFIGS: dict[str, dict[str, dict]] = {
    "fixed_offset": {
        "last_k3": {},
        "last_k1": {"offset": 1},
        "last_k7": {"offset": 7, "min_length": 8},
        "every_k3": {"query": "every"},
    },
    "delay_copy": {
        "small_4_8": {},
        "full_15_25": {**_PAPER, "d_min": 15, "d_max": 25},
        "selective_15_25": {**_PAPER, "d_min": 15, "d_max": 25, "kinds": "S"},
        "full_15_25_clean": {**_PAPER, "d_min": 15, "d_max": 25, "unreachable": "masked"},
        "full_0_50": {**_PAPER, "d_min": 0, "d_max": 50},
    },
}


def unknown(kind: str, given, allowed) -> ValueError:
    near = difflib.get_close_matches(str(given), [str(a) for a in allowed], n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return ValueError(f"unknown {kind} {given!r}{hint}; allowed: {', '.join(map(str, allowed))}")


def build_task(spec: str | dict) -> Task:
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
    types = typing.get_type_hints(TASKS[name])
    allowed = [field.name for field in dataclasses.fields(TASKS[name])]
    for key in given:
        if key not in allowed:
            raise unknown(f"parameter of task {name!r}", key, allowed)
    return TASKS[name](**{key: _typed(name, key, value, types[key]) for key, value in given.items()})


def _typed(task: str, key: str, value, hint):
    """The value as its type, where nothing is lost: YAML's lists become tuples, whole floats integers."""
    options = typing.get_args(hint) if typing.get_origin(hint) is not tuple and typing.get_args(hint) else (hint,)
    for option in options:
        if option is type(None) and value is None:
            return None
        if typing.get_origin(option) is tuple and isinstance(value, list | tuple):
            if all(isinstance(item, int) and not isinstance(item, bool) for item in value):
                return tuple(value)
        elif option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        elif isinstance(option, type) and type(value) is option:
            return value
    wanted = getattr(hint, "__name__", None) or str(hint)
    raise ValueError(f"task {task!r}: {key} is {value!r}; it must be of type {wanted}")


def resolve_task(spec: str | dict) -> dict:
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
