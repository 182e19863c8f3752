"""A task as a folder of Parquet files with a card: what the Hub serves, and what `load_dataset` opens anywhere."""

import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import yaml

from .base import Task
from .builder import FEATURES, arrow_table, pieces
from .cells import SPLITS
from .parameters import unknown
from .registry import CONFIGS, TASKS, build_task, config_spec, resolve_task

SHARD_TOKENS = 20_000_000


def export_task(
    name: str,
    folder: str | Path,
    *,
    configs: list[str] | None = None,
    seed: int = 0,
    count: int = 1000,
    train_count: int = 10000,
) -> Path:
    """Write <folder>/<config>/<split>-0000i-of-0000n.parquet for some configurations (None: all) and README.md.

    Memory stays at one table of rows, whatever the size. Raises `FileExistsError` for a folder that is not empty.
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: export into a new folder")
    written = {}
    for config in configs or CONFIGS[name]:
        task = build_task(config_spec(name, config))
        written[config] = {
            split: _write_split(task, seed, split, train_count if split == "train" else count, folder / config)
            for split in SPLITS
            if task.splits().get(split)
        }
    (folder / "README.md").write_text(dataset_card(name, written, seed))
    return folder


def _write_split(task: Task, seed: int, split: str, count: int, folder: Path) -> list[dict]:
    """Write a split's shards; returns their files, rows, bytes and checksums."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = task.cells(split)
    tokens = count * sum(cell.length + task.slots() for cell in cells)
    shards = max(1, -(-tokens // SHARD_TOKENS))
    spans = [(cell, *piece) for cell in cells for piece in pieces(cell, 0, count)]
    files = []
    for shard in range(shards):
        path = folder / f"{split}-{shard:05d}-of-{shards:05d}.parquet"
        mine = spans[shard * len(spans) // shards : (shard + 1) * len(spans) // shards]
        with pq.ParquetWriter(path, FEATURES.arrow_schema, compression="zstd") as writer:
            for cell, start, stop in mine:
                writer.write_table(arrow_table(task, seed, split, cell, start, stop).cast(FEATURES.arrow_schema))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        rows = sum(stop - start for _, start, stop in mine)
        files.append(
            {"file": f"{folder.name}/{path.name}", "rows": rows, "bytes": path.stat().st_size, "sha256": digest}
        )
    return files


def dataset_card(name: str, written: dict[str, dict[str, list[dict]]], seed: int = 0) -> str:
    """README.md: the YAML that `load_dataset` reads, and what a person wants to know."""
    default = next(iter(written), next(iter(CONFIGS[name])))
    features = [
        {"name": "input_ids", "list": "int64"},
        {"name": "labels", "list": "int64"},
        *({"name": column, "dtype": "int64"} for column in ("length", "distance", "index")),
    ]
    head = {
        "license": "apache-2.0",
        "pretty_name": f"posgen {name.replace('_', ' ')}",
        "task_categories": ["text-generation"],
        "tags": ["hf_posgen", "synthetic", "length-generalization", "positional-encoding"],
        "configs": [
            {
                "config_name": config,
                "data_files": [{"split": split, "path": f"{config}/{split}-*.parquet"} for split in splits],
            }
            | ({"default": True} if config == default else {})
            for config, splits in written.items()
        ],
        "dataset_info": [
            {
                "config_name": config,
                "features": features,
                "splits": [
                    {
                        "name": split,
                        "num_examples": sum(f["rows"] for f in files),
                        "num_bytes": sum(f["bytes"] for f in files),
                    }
                    for split, files in splits.items()
                ],
            }
            for config, splits in written.items()
        ],
    }
    return f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n{_body(name, written, seed)}"


def _body(name: str, written: dict, seed: int) -> str:
    cls = TASKS[name]
    blocks = [f"# posgen: {name}", _as_markdown(cls.__doc__)]
    for config in written or CONFIGS[name]:
        task = build_task(config_spec(name, config))
        rows = "\n".join(f"| `{key}` | `{value}` |" for key, value in resolve_task(config_spec(name, config)).items())
        splits = "\n".join(
            f"| {split} | {len(cells)} | {_span(c.length for c in cells)} | {_span(c.distance for c in cells)} |"
            for split, cells in task.splits().items()
            if cells
        )
        blocks.append(
            f"## `{config}`\n\n| parameter | value |\n|---|---|\n{rows}\n\n"
            f"| split | cells | lengths | distances |\n|---|---|---|---|\n{splits}\n\n"
            f"Chance {task.chance(task.cells('test')[0]):.4f}; {task.vocab_size} token ids, control tokens last: "
            f"{', '.join(task.vocabulary[task.data_symbols :])}."
        )
    files = [f for splits in written.values() for shard in splits.values() for f in shard]
    if files:
        rows = "\n".join(f"| {f['file']} | {f['rows']} | `{f['sha256']}` |" for f in files)
        blocks.append(f"## Files (seed {seed})\n\n| file | rows | sha256 |\n|---|---|---|\n{rows}")
    blocks.append(_CLOSING.format(name=name, config=next(iter(written or CONFIGS[name]))))
    return "\n\n".join(blocks) + "\n"


def _as_markdown(docstring: str) -> str:
    """A docstring with its drawings (indented lines) as code blocks."""
    lines = [line[4:] if line.startswith("    ") else line for line in docstring.strip().splitlines()]
    out, drawing = [], False
    for line in lines:
        deep = line.startswith("    ")
        if deep != drawing and (line.strip() or drawing):
            out.append("```")
            drawing = deep
        out.append(line)
    return "\n".join(out + (["```"] if drawing else []))


def _span(values) -> str:
    values = sorted({v for v in values if v is not None})
    return "mixed" if not values else str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


_CLOSING = """## Use

```python
from datasets import load_dataset

test = load_dataset("<owner>/posgen-{name}", "{config}", split="test")
```

Columns: `input_ids`; `labels` (-100 where nothing is asked; the label at t is scored on the logits at t - 1, as in
transformers); `length` and `distance` of the cell, in tokens (null where a training sequence mixes distances); `index`.
Example i of a cell is a function of the seed, the split, the cell and i.

## Limits

Synthetic sequences of uniform random symbols: a result here says what an encoding can do with positions, and nothing
about natural language. Licence Apache-2.0. Cite the study the task comes from (named above) and hf_posgen."""
