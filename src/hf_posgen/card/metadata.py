"""Rows as the Hub's metadata of results: `model-index` and `.eval_results/*.yaml`, both made from the same summaries."""

import hashlib
import json
from dataclasses import dataclass

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from ..results.aggregate import CellMean, over_cells
from ..results.columns import SCORES
from ..tasks import CONFIGS, SPLITS, config_spec, resolve_task

METRICS = {key: (score.hub, score.label) for key, score in SCORES.items() if score.hub}


@dataclass(frozen=True)
class SplitSummary:
    """What one run scored on one split. Lengths and distances are (smallest, largest), in tokens; `count` is sequences."""

    split: str
    cells: int
    lengths: tuple[int, int]
    distances: tuple[int, int] | None
    count: int
    chance: float
    seed: int
    fit: bool
    scores: dict[str, CellMean]


def summarize(rows: list[dict]) -> list[SplitSummary]:
    """One summary per split, in the usual order; a metric without a value in any cell of a split is left out."""
    order = [split for split in SPLITS if any(row["split"] == split for row in rows)]
    return [_summary(split, [row for row in rows if row["split"] == split]) for split in order]


def _summary(split: str, rows: list[dict]) -> SplitSummary:
    distances = [row["distance"] for row in rows if row.get("distance") is not None]
    lengths = [row["length"] for row in rows]
    shown = METRICS if any("first_accuracy" in row or "perplexity" in row for row in rows) else ["exact_match"]
    scored = {metric: [row for row in rows if row.get(metric) is not None] for metric in shown}
    return SplitSummary(
        split=split,
        cells=len(rows),
        lengths=(min(lengths), max(lengths)),
        distances=(min(distances), max(distances)) if distances else None,
        count=sum(row["count"] for row in rows),
        chance=sum(row["chance"] for row in rows) / len(rows),
        seed=rows[0]["seed"],
        fit=bool(rows[0]["fit"]),
        scores={metric: over_cells(some, metric) for metric, some in scored.items() if some},
    )


def named(task: dict) -> bool:
    """Whether a task's data have, or may have, a repository on the Hub: of ours the named configurations, of text what does
    not lie on the user's own disk."""
    if task["name"] == "text":
        return task["data_files"] is None and task["dataset"][0] not in "./~"
    return _configuration(task) is not None


def _configuration(task: dict) -> str | None:
    """The name of the configuration that a task's complete spec is, if any. The spec is taken as it is: a card may be of
    another version's task."""
    name = task["name"]
    return next((one for one in CONFIGS.get(name, ()) if resolve_task(config_spec(name, one)) == task), None)


def repository(task: str) -> str:
    """What a task's data set is called on the Hub."""
    return f"posgen-{task.replace('_', '-')}"


def benchmark(task: dict, owner: str | None = None) -> tuple[str, str]:
    """(id of the data set, its configuration) of a task's complete spec.

    Where no named configuration is the same: the kind of task without an owner, and "custom_" with a digest."""
    name = task["name"]
    if name == "text":
        return (task["dataset"] if named(task) else "text"), task["config"] or "default"
    config, dataset = _configuration(task), repository(name)
    if config is None:
        return dataset, f"custom_{hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()[:8]}"
    return (f"{owner}/{dataset}" if owner else dataset), config


def model_index(
    summaries: list[SplitSummary], task: dict, owner: str | None = None, weights: str | None = None
) -> list[EvalResult]:
    """Every metric of every split. Interval, counts, seed and which weights stand among the metric's arguments."""
    dataset, config = benchmark(task, owner)
    return [
        EvalResult(
            task_type="text-generation",
            task_name="Language modeling" if task["name"] == "text" else "Retrieval by position",
            dataset_type=dataset,
            dataset_name=f"{dataset.split('/')[-1]} ({config})",
            dataset_config=config,
            dataset_split=one.split,
            metric_type=METRICS[metric][0],
            metric_name=METRICS[metric][1],
            metric_value=round(score.mean, 6),
            metric_args={
                "low": round(score.low, 6),
                "high": round(score.high, 6),
                "worst_cell": round(score.worst, 6),
                "cells": one.cells,
                "sequences": one.count,
                **({} if metric == "perplexity" else {"chance": round(one.chance, 6)}),
                "seed": one.seed,
                "fit": one.fit,
                **({"weights": weights} if weights else {}),
            },
        )
        for one in summaries
        for metric, score in one.scores.items()
    ]


def eval_files(
    summaries: list[SplitSummary], task: dict, owner: str | None = None, weights: str | None = None
) -> dict[str, str]:
    """{path: YAML}: the exact match of each split in a file of its own, as the Hub asks of several scores of one benchmark.
    None for a task without a name: no benchmark lists it.

    Without a date: the Hub takes the commit's, and the same rows give the same file."""
    if not named(task):
        return {}
    dataset, config = benchmark(task, owner)
    files = {}
    for one in summaries:
        score = one.scores.get("exact_match")
        if score is None:
            continue
        notes = f"mean of exact match over {one.cells} cells, {one.count} sequences, seed {one.seed}"
        notes += f", weights {weights}" if weights else ""
        entry = EvalResultEntry(
            dataset_id=dataset,
            task_id=f"{config}_{one.split}",
            value=round(score.mean, 6),
            notes=notes if one.fit else f"{notes}; did not fit its training range",
        )
        path = f".eval_results/{dataset.split('/')[-1]}_{config}_{one.split}.yaml"
        files[path] = dump(eval_result_entries_to_yaml([entry]))
    return files


def dump(entries: list) -> str:
    """As YAML, keys in their order."""
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True)


def headline(configs: dict[str, list[str]]) -> str:
    """The one task of a benchmark that stands for it: of the first configuration what is farther, else what comes last."""
    config, splits = next(iter(configs.items()))
    return f"{config}_{'farther' if 'farther' in splits else splits[-1]}"


def benchmark_file(name: str, configs: dict[str, list[str]]) -> str:
    """The `eval.yaml` by which a data set's repository declares itself a benchmark: a task per configuration and split, the
    headline first and named in the description.

    It is ready for the day the Hub lists it: leaderboards open only for data sets and frameworks that its staff admit."""
    first = headline(configs)
    tasks = [
        {"id": f"{config}_{split}", "config": config, "split": split}
        for config, splits in configs.items()
        for split in splits
        if split != "train"
    ]
    tasks.sort(key=lambda task: task["id"] != first)
    head = {
        "name": name,
        "description": "Whether a positional encoding generalises to lengths and distances it was not trained on. "
        f"Headline task: {first}.",
        "evaluation_framework": "hf_posgen",
    }
    return yaml.safe_dump(head | {"tasks": tasks}, sort_keys=False)
