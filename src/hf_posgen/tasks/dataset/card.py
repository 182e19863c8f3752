"""The card of a task's data set: the YAML that `load_dataset` reads, and what a person wants to know."""

import inspect
from dataclasses import dataclass, field

import yaml

from ...card.metadata import headline, repository
from ..configs import CONFIGS
from ..core.cells import SPLITS
from ..core.real_task import RealTask
from ..core.task import Task
from ..core.token_task import TokenTask
from ..registry import TASKS, build_task, config_spec, resolve_task


@dataclass
class Written:
    """One configuration of a data set: how much of it there is, and the files once they are written."""

    task: Task
    seed: int
    count: int
    train_count: int
    splits: list[str]
    files: list[dict] = field(default_factory=list)  # split, file, rows, bytes, sha256
    duplicates: dict[str, int] | None = None

    def rows_per_cell(self, split: str) -> int:
        return self.train_count if split == "train" else self.count

    def rows(self, split: str) -> int:
        return self.rows_per_cell(split) * len(self.task.cells(split))


def planned(task: Task, seed: int = 0, count: int = 1000, train_count: int = 10000) -> Written:
    """A configuration that isn't written yet."""
    mine = task.splits()
    return Written(task, seed, count, train_count, [split for split in SPLITS if mine.get(split)])


def dataset_card(name: str, written: dict[str, Written] | None = None) -> str:
    """README.md of a task's data set; without `written`, of all named configurations at the default sizes."""
    if written is None:
        written = {config: planned(build_task(config_spec(name, config))) for config in CONFIGS[name]}
    head = yaml.safe_dump(_metadata(name, written), sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n{_body(name, written)}"


def _metadata(name: str, written: dict[str, Written]) -> dict:
    return {
        "license": "apache-2.0",
        "pretty_name": f"posgen {name.replace('_', ' ')}",
        "task_categories": ["time-series-forecasting" if TASKS[name].continuous else "text-generation"],
        "tags": ["hf_posgen", "synthetic", "length-generalization", "positional-encoding"],
        "configs": [
            {
                "config_name": config,
                **({"default": True} if config == next(iter(written)) else {}),
                "data_files": [{"split": split, "path": f"{config}/{split}-*.parquet"} for split in one.splits],
            }
            for config, one in written.items()
        ],
        "dataset_info": [
            {
                "config_name": config,
                "features": _feature_list(one.task),
                "splits": [_split_info(one, split) for split in one.splits],
            }
            for config, one in written.items()
        ],
    }


def _feature_list(task: Task) -> list[dict]:
    kinds = dict.fromkeys(task.columns, "float32" if task.continuous else "int64")
    if task.continuous:
        kinds["inputs"] = {"list": "float32"}
    columns = [{"name": name, "list": kind} for name, kind in kinds.items()]
    return columns + [{"name": name, "dtype": "int64"} for name in ("length", "distance", "index")]


def _split_info(one: Written, split: str) -> dict:
    info = {"name": split, "num_examples": one.rows(split)}
    sizes = [file["bytes"] for file in one.files if file["split"] == split]
    return info | ({"num_bytes": sum(sizes)} if sizes else {})


def _body(name: str, written: dict[str, Written]) -> str:
    cls = TASKS[name]
    blocks = [f"# posgen: {name}", *map(as_markdown, _docstrings(cls))]
    first, base = next((config, resolve_task(one.task)) for config, one in written.items())
    blocks += [_section(config, one, first, {} if config == first else base) for config, one in written.items()]
    files = [file for one in written.values() for file in one.files]
    if files:
        rows = "\n".join(f"| {f['file']} | {f['rows']} | {f['bytes']} | `{f['sha256']}` |" for f in files)
        blocks.append(f"## Files\n\n| file | rows | bytes | sha256 |\n|---|---|---|---|\n{rows}")
    more = _POSITIONS if any("positions" in one.task.columns for one in written.values()) else ""
    columns = _REAL_COLUMNS if cls.continuous else _TOKEN_COLUMNS.format(more=more)
    told = {
        "config": next(iter(written)),
        "headline": headline({config: one.splits for config, one in written.items()}),
    }
    blocks.append(_CLOSING.format(name=name, repository=repository(name), columns=columns, **told))
    return "\n\n".join(blocks) + "\n"


def _docstrings(cls: type) -> list[str]:
    """The task's own text, then what it shares with others, without the sentence that introduces that."""
    shared = [one for one in cls.__mro__[1:] if issubclass(one, Task) and one not in (Task, TokenTask, RealTask)]
    return [inspect.cleandoc(cls.__doc__), *(inspect.cleandoc(one.__doc__).split("\n\n", 1)[1] for one in shared)]


def _section(config: str, one: Written, first: str, base: dict) -> str:
    """One configuration: its parameters (those that differ from `base`, the first's), splits and reference points."""
    task = one.task
    own = {key: value for key, value in resolve_task(task).items() if key not in base or base[key] != value}
    parameters = "\n".join(f"| `{key}` | `{_short(value)}` |" for key, value in own.items() if key != "name")
    heading = f"parameter, where it differs from `{first}`" if base else "parameter"
    splits = "\n".join(
        f"| {split} | {len(task.cells(split))} | {_span(c.length for c in task.cells(split))} "
        f"| {_span(c.distance for c in task.cells(split))} | {one.rows(split)} | {_repeated(one, split)} |"
        for split in one.splits
    )
    cell = task.cells("test")[0]
    points = {"chance": task.chance(cell), "ceiling": task.ceiling(cell)} | task.baselines(cell)
    told = ", ".join(f"{key.replace('_', ' ')} {value:.4f}" for key, value in points.items())
    text = (
        f"## `{config}`\n\n| {heading} | value |\n|---|---|\n{parameters}\n\nSeed {one.seed}.\n\n"
        f"| split | cells | lengths | distances | sequences | also in train |\n|---|---|---|---|---|---|\n{splits}\n\n"
        f"Reference points at {cell}: {told}."
    )
    if not task.continuous:
        control = ", ".join(task.vocabulary[task.data_symbols :])
        text += f" {task.vocab_size} token ids: {task.data_symbols} data symbols from 0, then {control}."
    return text


def _repeated(one: Written, split: str) -> str:
    return "-" if split == "train" or one.duplicates is None else str(one.duplicates[split])


def _short(value) -> str:
    return as_text(value) if isinstance(value, list) else str(value)


def as_text(numbers: list[int]) -> str:
    """Whole numbers as ranges: [1, 2, 3, 7] is "1-3,7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "none"


def _span(values) -> str:
    values = sorted({value for value in values if value is not None})
    return as_text(values) if values else "mixed"


def as_markdown(docstring: str) -> str:
    """A docstring with its drawings (indented lines) as code blocks."""
    out, drawing = [], False
    for line in docstring.splitlines():
        deep = line.startswith("    ")
        if deep != drawing and (line.strip() or drawing):
            out.append("```")
            drawing = deep
        out.append(line)
    return "\n".join(out + (["```"] if drawing else []))


_TOKEN_COLUMNS = """Columns: `input_ids`; `labels` (-100 where nothing is asked; the label at t is scored on the logits at
t - 1, as in transformers); `length` and `distance` of the cell, in tokens (null where a training sequence mixes
distances); `index`.{more}"""

_POSITIONS = """ Where positions are coupled, also `positions`: where the model is told each token stands."""

_REAL_COLUMNS = """Columns: `inputs`, a list of vectors; `targets`, aligned with them (nothing is shifted; NaN where nothing
is asked); `length` and `distance` of the cell (null where training mixes distances); `index`. The score is the mean squared
error in units of the signal's variance: 1 for always saying 0, 0 for a perfect model."""

_CLOSING = """## Use

```python
from datasets import load_dataset

test = load_dataset("<owner>/{repository}", "{config}", split="test")
```

The same without a download, and with any parameter changed: `hf_posgen.load_task("{name}", "{config}", split="test")`.

{columns} Example i of a cell is a function of the seed, the split, the cell and i, and of nothing else.

Splits: `train`; `validation` (in distribution, for selection); `test` (in distribution, never selected on); `longer`
(unseen length, trained distance); `farther` and `nearer` (trained length, unseen distance beyond or below); `between`
(unseen, inside the trained range); `both`. *Also in train*: how many sequences of a split stand in `train` too.

## As a benchmark

`eval.yaml` lists a task per configuration and split; the headline is `{headline}`. A leaderboard appears on the Hub only
once its staff have listed the data set.

## Limits

Synthetic sequences of random symbols: a result here says what an encoding can do with positions, and nothing about
natural language. What is marked *reconstructed* above is our choice where the paper says nothing.

## Licence and citation

Apache-2.0. Cite the study that the task comes from (named above) and hf_posgen."""
