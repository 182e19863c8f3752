"""What `posgen list` shows: tables computed from the registries."""

import importlib
import inspect

from ..common.names import unknown


def _encodings() -> list[dict]:
    from ..model.capabilities import capabilities

    return capabilities()


def _components(what: str) -> list[dict]:
    from ..model.component import hyperparameters

    rows = []
    for name, cls in registry_of(what).items():
        parameters = ", ".join(f"{key}={value}" for key, value in hyperparameters(cls).items())
        rows.append({"name": name, "hyper-parameters": parameters or "-", "what": _first_sentence(cls)})
    return rows


def _first_sentence(cls) -> str:
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split())


def _tasks() -> list[dict]:
    from ..tasks import TASKS

    return [
        {"task": name, "configurations": ", ".join(cls.configs) or "-", "what": _first_sentence(cls)}
        for name, cls in TASKS.items()
    ]


def _presets() -> list[dict]:
    from ..sweep.spec import presets, read_sweep, sweep_runs

    out = []
    for name in presets():
        runs = sweep_runs(read_sweep(name))
        out.append({"preset": name, "runs": len(runs), "panels": ", ".join(dict.fromkeys(run.panel for run in runs))})
    return out


def _analyses() -> list[dict]:
    from ..analysis.registry import ANALYSES, summary

    return [{"analysis": name, "what": summary(name)} for name in ANALYSES]


LISTS = {
    "encodings": _encodings,
    "tasks": _tasks,
    "presets": _presets,
    "samplers": lambda: _components("samplers"),
    "scales": lambda: _components("scales"),
    "mixers": lambda: _components("mixers"),
    "analyses": _analyses,
}
REGISTRIES = {
    "encodings": ("encoding_registry", "ENCODINGS"),
    "samplers": ("position_sampler", "SAMPLERS"),
    "scales": ("logit_scale", "LOGIT_SCALES"),
    "mixers": ("mixer_registry", "MIXERS"),
}


def describe(what: str, name: str) -> str:
    """Return what one entry of a list is and its parameters: name, type, default, meaning. Raises `ValueError` for an
    unknown name, and for a list whose entries have no parameters."""
    from ..tasks.registry import TASKS, task_parameters

    if what not in (*REGISTRIES, "tasks"):
        raise ValueError(f"posgen list {what} takes no name; these do: {', '.join((*REGISTRIES, 'tasks'))}")
    classes = TASKS if what == "tasks" else registry_of(what)
    if name not in classes:
        raise unknown(what.removesuffix("s"), name, classes)
    rows = [_task_row(one) for one in task_parameters(name)] if what == "tasks" else component_rows(classes[name])
    text = inspect.cleandoc(classes[name].__doc__ or "")
    return f"{name}: {text}\n\n{table(rows) if rows else 'It has no parameters.'}"


def task_tables() -> str:
    """Return a table of parameters for every task, each below its name, as Markdown."""
    from ..tasks.registry import TASKS, task_parameters

    return "\n\n".join(f"### {name}\n\n{table([_task_row(one) for one in task_parameters(name)])}" for name in TASKS)


def component_rows(cls: type) -> list[dict]:
    """Return one row per hyper-parameter of a component."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    return [
        {
            "hyper-parameter": parameter.name,
            "type": "-" if parameter.annotation is parameter.empty else inspect.formatannotation(parameter.annotation),
            "default": "needed" if parameter.default is parameter.empty else _written(parameter.default),
        }
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY
    ]


def table(rows: list[dict]) -> str:
    """Return rows as a Markdown table."""
    import pandas as pd

    return pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)


def registry_of(what: str) -> dict[str, type]:
    """Return {name: class} of a list of components."""
    module, registry = REGISTRIES[what]
    return getattr(importlib.import_module(f"hf_posgen.model.{module}"), registry)


def _task_row(parameter) -> dict:
    return {
        "parameter": parameter.name,
        "type": parameter.type,
        "default": _written(parameter.default),
        "allowed": parameter.allowed or "-",
        "meaning": parameter.meaning,
    }


def _written(value) -> str:
    """A value as YAML has it."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
