"""What `posgen list` shows: tables computed from the registries."""

import importlib


def _encodings() -> list[dict]:
    from ..model.capabilities import capabilities

    return capabilities()


def _components(module: str, registry: str) -> list[dict]:
    from ..model.component import hyperparameters

    classes = getattr(importlib.import_module(f"hf_posgen.model.{module}"), registry)
    return [
        {"name": name, "hyper-parameters": _said(hyperparameters(cls)), "what": _first_sentence(cls)}
        for name, cls in classes.items()
    ]


def _said(parameters: dict) -> str:
    return ", ".join(f"{key}={value}" for key, value in parameters.items()) or "-"


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
    "samplers": lambda: _components("position_sampler", "SAMPLERS"),
    "scales": lambda: _components("logit_scale", "LOGIT_SCALES"),
    "analyses": _analyses,
    "mixers": lambda: _components("mixer_registry", "MIXERS"),
}
