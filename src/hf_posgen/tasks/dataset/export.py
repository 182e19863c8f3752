"""A task as a folder of Parquet files with a card: what the Hub serves, and what `load_dataset` opens anywhere."""

import hashlib
import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from ...common.files import require_folder
from ..core.task import Task
from ..registry import build_task, config_name, config_spec, custom_name, generated_class, resolve_task
from .builder import check_sizes
from .card import dataset_card
from .duplicates import count_duplicates
from .manifest import MANIFEST, Manifest, describe
from .published import benchmark_file, repository
from .tables import arrow_table, features, pieces

SHARD_TOKENS = 20_000_000


def export_task(
    task: str | dict | Task,
    folder: str | Path,
    *,
    configs: list[str] | None = None,
    seed: int = 0,
    count: int = 1000,
    train_count: int | dict[str, int] = 10000,
) -> Path:
    """Write a folder that `load_dataset(folder, config)` opens: Parquet shards, manifests, README.md and eval.yaml.

    task: a name, for some of its named configurations (None: all), or a spec, for that one. `count` sequences per cell of
    the evaluation splits, `train_count` per cell of `train` (also by configuration). Files are called
    <config>/<split>-0000i-of-0000n.parquet. The folder appears when everything is written; memory stays at one table of
    rows, whatever the size.
    Raises `ValueError` for an unknown task, configuration or parameter, `FileExistsError` for a folder that is not empty.
    """
    folder = Path(folder)
    require_folder(folder.parent)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is not empty: export into a new folder")
    chosen = _chosen(task, configs)
    name = next(iter(chosen.values())).name
    counts = {
        config: train_count if isinstance(train_count, int) else train_count.get(config, 10000) for config in chosen
    }
    check_sizes(seed=seed, count=count, **{f"train_count of {config}": value for config, value in counts.items()})
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        manifests = {}
        for config, one in chosen.items():
            manifests[config] = manifest = describe(one, seed, count, counts[config])
            for split in manifest.splits:
                manifest.files += _write_split(one, manifest, split, beside / config)
            for split, repeated in count_duplicates(one, seed, count, counts[config]).items():
                manifest.splits[split]["in_train"] = repeated
            (beside / config / MANIFEST).write_text(manifest.text(), encoding="utf-8")
        (beside / "README.md").write_text(dataset_card(name, manifests), encoding="utf-8")
        splits = {config: list(manifest.splits) for config, manifest in manifests.items()}
        (beside / "eval.yaml").write_text(benchmark_file(repository(name), splits), encoding="utf-8")
        beside.chmod(0o755)
        if folder.exists():
            folder.rmdir()
        beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return folder


def _chosen(task: str | dict | Task, configs: list[str] | None) -> dict[str, Task]:
    """Return {configuration: task}."""
    if not isinstance(task, str):
        built = build_task(task)
        generated_class(built.name)
        if configs is not None:
            raise ValueError("configurations belong to a task given by its name, not by a spec")
        spec = resolve_task(built)
        return {config_name(spec) or custom_name(spec): built}
    return {config: build_task(config_spec(task, config)) for config in configs or generated_class(task).configs}


def _write_split(task: Task, manifest: Manifest, split: str, folder: Path) -> list[dict]:
    """Write a split's shards; return their files, rows, bytes and checksums."""
    folder.mkdir(parents=True, exist_ok=True)
    cells, schema = (
        task.cells(split),
        features(task).arrow_schema.remove_metadata(),
    )  # which older versions of datasets can't read
    count = manifest.train_count if split == "train" else manifest.count
    shards = max(1, -(-count * sum(cell.length + task.slots() for cell in cells) // SHARD_TOKENS))
    spans = [(cell, *piece) for cell in cells for piece in pieces(cell, 0, count)]
    shards = min(shards, len(spans))
    files = []
    for shard in range(shards):
        path = folder / f"{split}-{shard:05d}-of-{shards:05d}.parquet"
        part = spans[shard * len(spans) // shards : (shard + 1) * len(spans) // shards]
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for cell, start, stop in part:
                writer.write_table(arrow_table(task, manifest.seed, split, cell, start, stop))
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        rows = sum(stop - start for _, start, stop in part)
        name = f"{folder.name}/{path.name}"
        files.append({"split": split, "file": name, "rows": rows, "bytes": path.stat().st_size, "sha256": digest})
    return files
