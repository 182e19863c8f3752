"""Rows as the Hub's metadata of results: `model-index` and `.eval_results/*.yaml`, both made from the same summaries."""

from dataclasses import dataclass

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from ..results.aggregate import CellMean, over_cells
from ..results.columns import SCORES
from ..tasks import SPLITS, TASKS
from ..tasks.dataset.published import benchmark, named

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


def metric_of(task: dict) -> str:
    """Return what a complete spec's task is judged by; "exact_match" for a task that this process doesn't know."""
    return TASKS[task["name"]].metric if task["name"] in TASKS else "exact_match"


def model_index(
    summaries: list[SplitSummary], task: dict, owner: str | None = None, weights: str | None = None
) -> list[EvalResult]:
    """Every metric of every split. Interval, counts, seed and which weights stand among the metric's arguments."""
    dataset, config = benchmark(task, owner)
    return [
        EvalResult(
            task_type="text-generation",
            task_name="Language modeling" if metric_of(task) == "perplexity" else "Retrieval by position",
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
