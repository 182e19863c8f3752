"""What a model card states of a run, as the template reads it."""

import json
import re
from collections.abc import Sequence
from urllib.parse import quote

import yaml

from ..report.headline_tables import run_numbers
from ..results.columns import BASELINES, SCORES, chance_beside
from ..results.definitions import DEFINITIONS
from ..results.frame import frame
from ..results.panel import Panel
from ..run.components import describe_component, distinct_specs
from ..run.folder import FIGURES, RunFolder, state_name
from ..run.schema import COMPONENTS
from ..tasks import TASKS
from .metadata import METRICS, SplitSummary, metric_of

MOST_CELLS = 40  # beyond that a card points to results.jsonl


def card_facts(
    folder: RunFolder,
    run: dict,
    rows: list[dict],
    summaries: list[SplitSummary],
    where: str,
    step: int | None,
    steps: Sequence[int],
) -> dict:
    """Return what the template reads. run: the configuration as nested dicts. where: what to load the model from. step,
    steps: as for `render`."""
    task, cells = run["task"], [row for row in rows if row["split"] != "validation"]
    return {
        "title": f"{run['arm']} on {task['name']}, seed {run['seed']}" + ("" if step is None else f", step {step}"),
        "where": where,
        "run": run,
        "step": step,
        "branch": "" if step is None else state_name(step),
        "revisions": [state_name(one) for one in steps],
        "components": [
            describe_component(field, spec) for field in COMPONENTS for spec in distinct_specs(run["model"][field])
        ],
        "task_text": _about(TASKS.get(task["name"])),
        "learned": any(spec["name"] == "learned" for spec in distinct_specs(run["model"]["position_encoding"])),
        "paper": getattr(TASKS.get(task["name"]), "paper", None),
        "row": rows[0] if rows else None,
        "fit": bool(rows[0]["fit"]) if rows else None,
        "results": [line for summary in summaries for line in _split_lines(summary)],
        "numbers": run_numbers(Panel(frame(rows))) if rows else {},
        "definitions": DEFINITIONS,
        "is_text": metric_of(task) == "perplexity",
        "cells": [line for row in cells for line in _cell_lines(row)] if len(cells) <= MOST_CELLS else [],
        "figures": sorted(f"{FIGURES}/{path.name}" for path in folder.figures.glob("*.png")),
        "has_analysis": folder.analysis.is_file(),
    }


def _about(task: type | None) -> str:
    """Return what a task is, in the first paragraph of its own text; empty for a task that is unknown here."""
    return "" if task is None else " ".join((task.__doc__ or "").split("\n\n")[0].split())


def _split_lines(summary: SplitSummary) -> list[dict]:
    """Return one line per score of a split, each with the chance of that very score."""
    facts = {"split": summary.split, "lengths": summary.lengths, "distances": summary.distances}
    facts |= {"cells": summary.cells, "count": summary.count}
    return [
        facts
        | {"score": METRICS[metric][1], "mean": mean.mean, "low": mean.low, "high": mean.high, "worst": mean.worst}
        | {"chance": summary.chance[metric]}
        for metric, mean in summary.scores.items()
    ]


def _cell_lines(row: dict) -> list[dict]:
    """Return one line per score of a cell, each with the baselines that are counted over the same tokens."""
    lines, pasted = [], "first_accuracy" in row
    for metric in METRICS if pasted or "perplexity" in row else ("exact_match",):
        if row.get(metric) is None:
            continue
        known = row.get("baselines") or {}
        beside = {BASELINES[key]: known[key] for key in SCORES[metric].baselines_beside(pasted) if key in known}
        facts = {name: row[name] for name in ("split", "length", "distance", "count")}
        facts |= {"score": METRICS[metric][1], "mean": row[metric], "chance": chance_beside(row, metric)}
        facts |= {end: row[f"{metric}_{end}"] for end in ("low", "high")} | {"baselines": beside}
        lines.append(facts | {"ceiling": row["ceiling"] if SCORES[metric].is_share else None})
    return lines


def _span(ends: Sequence[int] | None) -> str:
    """Return a range of lengths or distances; "mixed" where sequences mix them."""
    return "mixed" if ends is None else str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"


def _number(value: float | None) -> str:
    """Return three decimals, more for a share so small that they would show none."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:.1g}"


def _in_table(value) -> str:
    """Return text that stays in one cell of a Markdown table, and no HTML."""
    return re.sub(r"\s+", " ", str(value)).replace("|", "\\|").replace("<", "&lt;")


FILTERS = {
    "span": _span,
    "number": _number,
    "text": lambda text: " ".join(str(text).split()).replace("<", "&lt;"),
    "cell": _in_table,
    "literal": lambda text: json.dumps(text, ensure_ascii=False),  # a string of Python, whatever the path
    "link": quote,
    "as_yaml": lambda tree: yaml.safe_dump(
        tree, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    ).rstrip(),
}
