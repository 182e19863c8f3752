"""Tasks by name."""

import dataclasses
import hashlib
import json

from ..common.names import unknown
from .configs import CONFIGS
from .core.task import Task
from .cued_delay import CuedDelay
from .delay_copy.task import DelayCopy
from .fixed_offset import FixedOffset
from .induction import Induction
from .irregular_echo import IrregularEcho
from .linear_rnn_delay import LinearRNNDelay
from .multi_query_recall import MultiQueryRecall
from .selective_copying import SelectiveCopying
from .string_copy import RepeatCopy, StrideCopy, UniqueCopy
from .text.task import Text

TASKS: dict[str, type[Task]] = {
    "fixed_offset": FixedOffset,
    "delay_copy": DelayCopy,
    "cued_delay": CuedDelay,
    "unique_copy": UniqueCopy,
    "repeat_copy": RepeatCopy,
    "stride_copy": StrideCopy,
    "induction": Induction,
    "multi_query_recall": MultiQueryRecall,
    "selective_copying": SelectiveCopying,
    "linear_rnn_delay": LinearRNNDelay,
    "irregular_echo": IrregularEcho,
}
OWN = {"text": Text}  # on the user's data: no named configurations, and nothing to load or export


def build_task(spec: str | dict | Task) -> Task:
    """A task from a name or {"name": ..., **parameters}; a `config` among them names the configuration they change.

    Raises `ValueError` for an unknown name or parameter, a value of the wrong type, and parameters that can't be.
    """
    if isinstance(spec, Task):
        return spec
    name = spec.get("name") if isinstance(spec, dict) else spec
    if not isinstance(name, str):
        raise ValueError(f"a task is a name or a dict with a 'name', not {spec!r}")
    classes = TASKS | OWN
    if name not in classes:
        raise unknown("task", name, classes)
    given = {} if isinstance(spec, str) else {key: value for key, value in spec.items() if key != "name"}
    if "config" in given and name in TASKS:
        return build_task(config_spec(name, **given))
    allowed = [field.name for field in dataclasses.fields(classes[name])]
    for key in given:
        if key not in allowed:
            raise unknown(f"parameter of task {name!r}", key, allowed)
    return classes[name](**given)


def resolve_task(spec: str | dict | Task) -> dict:
    """The complete spec: every effective parameter by name."""
    task = build_task(spec)
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in task.parameters.items()}
    return {"name": task.name} | plain


def generated(name: str) -> None:
    """`ValueError` unless a task of this name can be loaded and exported."""
    if name in OWN:
        raise ValueError(f"task {name!r} is your own data: train on it; datasets.load_dataset opens it")
    if name not in TASKS:
        raise unknown("task", name, TASKS)


def config_spec(name: str, config: str | None = None, **parameters) -> dict:
    """The spec of a named configuration (None: the first), with some parameters changed."""
    generated(name)
    configs = CONFIGS[name]
    config = next(iter(configs)) if config is None else config
    if config not in list(configs):
        raise unknown(f"configuration of task {name!r}", config, configs)
    return {"name": name} | configs[config] | parameters


def config_name(spec: str | dict | Task) -> str:
    """The named configuration that a spec is, or "custom_" and a digest of its parameters."""
    spec = resolve_task(spec)
    for config in CONFIGS[spec["name"]]:
        if resolve_task(config_spec(spec["name"], config)) == spec:
            return config
    return f"custom_{hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:8]}"
