"""Tasks by name, specs, and what is the same task."""

import dataclasses
import hashlib
import inspect
import json
from pathlib import Path

from ..common.names import unknown
from .core.parameters import describe_parameters
from .core.task import Task
from .cued_delay import CuedDelay
from .delay_copy.task import DelayCopy
from .fixed_offset import FixedOffset
from .induction import Induction
from .irregular_echo import IrregularEcho
from .linear_rnn_delay import LinearRNNDelay
from .multi_query_recall import MultiQueryRecall
from .repeat_copy import RepeatCopy
from .selective_copying import SelectiveCopying
from .stride_copy import StrideCopy
from .text.task import Text
from .unique_copy import UniqueCopy

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
    "text": Text,
}


def register_task(name: str, cls: type[Task]) -> None:
    """Make a task of one's own known by name, for run files, `posgen` and `load_task`.

    cls: a frozen, keyword-only dataclass below `TokenTask`, `WindowTask` or `RealTask`, with a docstring; its `name`
    becomes `name`. Name the module that calls this under `imports` in a run file, or with `--imports`. Raises
    `ValueError` for a name that another class has, and for a class that can't be a task.
    """
    if not (isinstance(name, str) and name.isidentifier() and name == name.lower()):
        raise ValueError(f"a task's name is letters, digits and underscores in lower case, not {name!r}")
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise ValueError(f"task {name!r}: {cls!r} is no subclass of hf_posgen.tasks.Task")
    if "__dataclass_params__" not in vars(cls) or not cls.__dataclass_params__.frozen:
        raise ValueError(f"task {name!r}: {cls.__name__} must be a @dataclass(frozen=True, kw_only=True)")
    if not vars(cls).get("__doc__") or cls.__doc__.startswith(f"{cls.__name__}("):
        raise ValueError(f"task {name!r}: {cls.__name__} needs a docstring, which its data-set card shows")
    known = TASKS.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(
            f"the task {name!r} exists already ({known.__module__}.{known.__qualname__}): choose another name"
        )
    cls.name = name
    TASKS[name] = cls


def task_class(name: str) -> type[Task]:
    """Return the class of a task; `ValueError` for an unknown name."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def generated_tasks() -> dict[str, type[Task]]:
    """Return the tasks that are drawn from a seed, which can be loaded and exported."""
    return {name: cls for name, cls in TASKS.items() if cls.generated}


def comes_from_outside(cls: type[Task]) -> bool:
    """Whether a task is no part of this package."""
    return cls.__module__.partition(".")[0] != __name__.partition(".")[0]


def build_task(spec: str | dict | Task) -> Task:
    """Build a task from a name or {"name": ..., **parameters}; a `config` among them names the configuration they change.

    Raises `ValueError` for an unknown name or parameter, a value of the wrong type, and parameters that can't be.
    """
    if isinstance(spec, Task):
        return spec
    name = spec.get("name") if isinstance(spec, dict) else spec
    if not isinstance(name, str):
        raise ValueError(f"a task is a name or a dict with a 'name', not {spec!r}")
    cls = task_class(name)
    parameters = {} if isinstance(spec, str) else {key: value for key, value in spec.items() if key != "name"}
    if "config" in parameters and cls.generated:
        return build_task(config_spec(name, **parameters))
    allowed = [field.name for field in dataclasses.fields(cls)]
    for key in parameters:
        if key not in allowed:
            raise unknown(f"parameter of task {name!r}", key, allowed)
    return cls(**parameters)


def resolve_task(spec: str | dict | Task) -> dict:
    """Return the complete spec: every effective parameter by name."""
    task = build_task(spec)
    return {"name": task.name} | _plain(task.parameters)


def task_digest(spec: str | dict | Task) -> str:
    """Return eight hex digits of all that shapes what a task draws: its name, the parameters that shape it, the generator's
    version and, for a task from outside the package, its code. Two rows with the same digest answer the same question;
    which cells are evaluated is no part of it. Of text it is a digest of the tokens, not of a file's name."""
    task = build_task(spec)
    content = [task.name, _plain(task.drawn_parameters), task.version, code_digest(type(task))]
    return _digest(content)


def code_digest(cls: type[Task]) -> str:
    """Return eight hex digits of the file that defines a task from outside the package; empty for ours."""
    if not comes_from_outside(cls):
        return ""
    try:
        return hashlib.sha256(Path(inspect.getfile(cls)).read_bytes()).hexdigest()[:8]
    except (TypeError, OSError):  # defined in a notebook or on the command line
        return ""


def config_spec(name: str, config: str | None = None, **parameters) -> dict:
    """Return the spec of a named configuration (None: the first), with some parameters changed."""
    configs = generated_class(name).configs
    config = next(iter(configs)) if config is None else config
    if config not in list(configs):
        raise unknown(f"configuration of task {name!r}", config, configs)
    return {"name": name} | configs[config] | parameters


def config_name(spec: dict) -> str | None:
    """Return the named configuration that a complete spec is, or None. The spec is taken as it is: it may be of another
    version's task, or of one that this process doesn't know."""
    configs = TASKS[spec["name"]].configs if spec["name"] in generated_tasks() else {}
    return next((one for one in configs if resolve_task(config_spec(spec["name"], one)) == spec), None)


def custom_name(spec: dict) -> str:
    """Return what a complete spec without a named configuration is called: "custom_" and a digest of its parameters."""
    return f"custom_{_digest(spec)}"


def generated_class(name: str) -> type[Task]:
    """Return the class of a task that can be loaded and exported; `ValueError` for another."""
    if name in TASKS and not TASKS[name].generated:
        raise ValueError(f"task {name!r} is your own data: train on it; datasets.load_dataset opens it")
    if name not in TASKS:
        raise unknown("task", name, generated_tasks())
    return TASKS[name]


def task_parameters(name: str) -> list:
    """Return name, type, default, meaning and bounds of each parameter of a task (see `describe_parameters`)."""
    return describe_parameters(task_class(name))


def _plain(parameters: dict) -> dict:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in parameters.items()}


def _digest(content) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
