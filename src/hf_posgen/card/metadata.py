"""Rows as the Hub's metadata of results: `model-index` and `.eval_results/*.yaml`, both made from the same summaries."""

from dataclasses import dataclass

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml

from ..results.aggregate import CellMean, over_cells
from ..results.columns import SCORES, chance_beside
from ..tasks import SPLITS, TASKS
from ..tasks.dataset.published import benchmark, named

METRICS = {key: (score.hub, score.label) for key, score in SCORES.items() if score.hub}


@dataclass(frozen=True)
class SplitSummary:
    """What one run scored on one split.

    lengths, distances: (smallest, largest), in tokens. count: sequences. chance: {score: what a guess that reads nothing
    scores there, or None}. scores: {score: its mean over the cells}."""

    split: str
    cells: int
    lengths: tuple[int, int]
    distances: tuple[int, int] | None
    count: int
    chance: dict[str, float | None]
    seed: int
    fit: bool
    scores: dict[str, CellMean]


def summarize(rows: list[dict]) -> list[SplitSummary]:
    """Return one summary per split, in the usual order; a score without a value in any cell of a split is left out."""
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
        chance={metric: _mean_chance(cells, metric) for metric, cells in scored.items() if cells},
        seed=rows[0]["seed"],
        fit=bool(rows[0]["fit"]),
        scores={metric: over_cells(cells, metric) for metric, cells in scored.items() if cells},
    )


def _mean_chance(rows: list[dict], metric: str) -> float | None:
    known = [chance_beside(row, metric) for row in rows]
    return None if None in known else sum(known) / len(known)


def metric_of(task: dict) -> str:
    """Return what a complete spec's task is judged by; "exact_match" for a task that this process doesn't know."""
    return TASKS[task["name"]].metric if task["name"] in TASKS else "exact_match"


def model_index(
    summaries: list[SplitSummary], task: dict, owner: str | None = None, weights: str | None = None
) -> list[EvalResult]:
    """Return every score of every split. Interval, counts, seed and which weights are among the metric's arguments."""
    dataset, config = benchmark(task, owner)
    return [
        EvalResult(
            task_type="text-generation",
            task_name="Language modeling" if metric_of(task) == "perplexity" else "Retrieval by position",
            dataset_type=dataset,
            dataset_name=f"{dataset.split('/')[-1]} ({config})",
            dataset_config=config,
            dataset_split=summary.split,
            metric_type=METRICS[metric][0],
            metric_name=METRICS[metric][1],
            metric_value=round(score.mean, 6),
            metric_args={
                "low": round(score.low, 6),
                "high": round(score.high, 6),
                "worst_cell": round(score.worst, 6),
                "cells": summary.cells,
                "sequences": summary.count,
                **({} if summary.chance[metric] is None else {"chance": _short(summary.chance[metric])}),
                "seed": summary.seed,
                "fit": summary.fit,
                **({"weights": weights} if weights else {}),
            },
        )
        for summary in summaries
        for metric, score in summary.scores.items()
    ]


def _short(value: float) -> float:
    """Return six significant digits: the chance of a whole paste is small, and no zero."""
    return float(f"{value:.6g}")


def eval_files(
    summaries: list[SplitSummary], task: dict, owner: str | None = None, weights: str | None = None
) -> dict[str, str]:
    """Return {path: YAML}: the exact match of each split in a file of its own, as the Hub wants several scores of one
    benchmark; empty for a task without a name: no benchmark lists it.

    Without a date: the Hub takes the commit's, and the same rows give the same file."""
    if not named(task):
        return {}
    dataset, config = benchmark(task, owner)
    files = {}
    for summary in summaries:
        score = summary.scores.get("exact_match")
        if score is None:
            continue
        notes = f"mean of exact match over {summary.cells} cells, {summary.count} sequences, seed {summary.seed}"
        notes += f", weights {weights}" if weights else ""
        entry = EvalResultEntry(
            dataset_id=dataset,
            task_id=f"{config}_{summary.split}",
            value=round(score.mean, 6),
            notes=notes if summary.fit else f"{notes}; did not fit its training range",
        )
        path = f".eval_results/{dataset.split('/')[-1]}_{config}_{summary.split}.yaml"
        files[path] = dump(eval_result_entries_to_yaml([entry]))
    return files


def dump(entries: list) -> str:
    """Return YAML with the keys in their order."""
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True)
