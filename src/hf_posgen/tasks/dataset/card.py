"""The card of a task's data set: the YAML that `load_dataset` reads, and what a person wants to know."""

import inspect

import yaml

from ...common.templates import render_template
from ..core.real_task import RealTask
from ..core.task import Task
from ..core.token_task import TokenTask
from ..registry import TASKS, build_task, config_spec
from .manifest import Manifest, describe
from .published import headline, point_label, repository
from .seal import seal


def dataset_card(
    name: str, manifests: dict[str, Manifest] | None = None, repo_id: str | None = None, notes: str = ""
) -> str:
    """Return the README.md of a task's data set.

    manifests: {configuration: manifest}, the default first; None: all named configurations at the default sizes.
    repo_id: where it will live, for the lines that load it. notes: what others wrote, which follows our text."""
    if manifests is None:
        manifests = {config: describe(build_task(config_spec(name, config))) for config in TASKS[name].configs}
    head = yaml.safe_dump(_metadata(name, manifests), sort_keys=False, allow_unicode=True)
    body = _body(name, manifests, repo_id or f"<owner>/{repository(name)}")
    return f"---\n{head}---\n\n{seal(body, notes)}"


def _metadata(name: str, manifests: dict[str, Manifest]) -> dict:
    first = next(iter(manifests))
    ours = {} if manifests[first].outside else {"license": "apache-2.0"}  # of another's task its author decides
    return ours | {
        "pretty_name": f"posgen {name.replace('_', ' ')}",
        "task_categories": ["time-series-forecasting" if manifests[first].continuous else "text-generation"],
        "tags": ["hf_posgen", "synthetic", "length-generalization", "positional-encoding"],
        "configs": [
            {
                "config_name": config,
                **({"default": True} if config == first else {}),
                "data_files": [{"split": split, "path": f"{config}/{split}-*.parquet"} for split in manifest.splits],
            }
            for config, manifest in manifests.items()
        ],
        "dataset_info": [
            {
                "config_name": config,
                "features": _features(manifest),
                "splits": [_split_info(manifest, split) for split in manifest.splits],
            }
            for config, manifest in manifests.items()
        ],
    }


def _features(manifest: Manifest) -> list[dict]:
    kinds = dict.fromkeys(manifest.columns, "float32" if manifest.continuous else "int64")
    if manifest.continuous:
        kinds["inputs"] = {"list": "float32"}
    columns = [{"name": name, "list": kind} for name, kind in kinds.items()]
    return columns + [{"name": name, "dtype": "int64"} for name in ("length", "distance", "index")]


def _split_info(manifest: Manifest, split: str) -> dict:
    info = {"name": split, "num_examples": manifest.splits[split]["rows"]}
    sizes = [file["bytes"] for file in manifest.files if file["split"] == split]
    return info | ({"num_bytes": sum(sizes)} if sizes else {})


def _body(name: str, manifests: dict[str, Manifest], where: str) -> str:
    first = next(iter(manifests))
    facts = {
        "name": name,
        "where": where,
        "description": "\n\n".join(map(as_markdown, _docstrings(TASKS[name]))) if name in TASKS else "",
        "first": first,
        "outside": manifests[first].outside,
        "manifests": manifests,
        "parameters": {config: _parameters(manifest, manifests[first]) for config, manifest in manifests.items()},
        "continuous": manifests[first].continuous,
        "positions": any("positions" in manifest.columns for manifest in manifests.values()),
        "files": [file for manifest in manifests.values() for file in manifest.files],
        "headline": headline({config: list(manifest.splits) for config, manifest in manifests.items()}),
    }
    filters = {"span": _span, "label": point_label}
    return render_template("hf_posgen.tasks.dataset", "dataset_card.md.jinja", facts, filters)


def _span(numbers: list[int]) -> str:
    return as_text(numbers) if numbers else "mixed"


def _docstrings(cls: type) -> list[str]:
    """Return the task's own text, then what it shares with others, without the sentence that introduces that."""
    bases = [base for base in cls.__mro__[1:] if issubclass(base, Task) and base not in (Task, TokenTask, RealTask)]
    shared = [inspect.cleandoc(base.__doc__ or "").partition("\n\n")[2] for base in bases]
    return [inspect.cleandoc(cls.__doc__), *filter(None, shared)]


def _parameters(manifest: Manifest, first: Manifest) -> dict[str, str]:
    """Return {parameter: value as text}: all of the first configuration, of another those that differ from it."""
    base = {} if manifest is first else first.task
    return {
        key: as_text(value) if isinstance(value, list) else str(value)
        for key, value in manifest.task.items()
        if key != "name" and (key not in base or base[key] != value)
    }


def as_text(numbers: list[int]) -> str:
    """Return whole numbers as ranges: [1, 2, 3, 7] is "1-3,7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "none"


def as_markdown(docstring: str) -> str:
    """Return a docstring with its drawings (indented lines) as code blocks."""
    out, drawing = [], False
    for line in docstring.splitlines():
        deep = line.startswith("    ")
        if deep != drawing and (line.strip() or drawing):
            out.append("```")
            drawing = deep
        out.append(line)
    return "\n".join(out + (["```"] if drawing else []))
