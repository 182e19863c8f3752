"""Rows as data frames and panels. Nothing here loads a model."""

import math
import re

import pandas as pd

from .columns import DEFAULTS, REQUIRED, SCORES
from .panel import Panel

PANEL = ["panel", "task", "kind", "task_digest"]  # rows that are equal in these may be compared


def frame(rows: list[dict]) -> pd.DataFrame:
    """Return rows as a data frame with every column of `columns.DEFAULTS`.

    Raises `ValueError` where there are none, columns are missing, or an arm has two runs of one seed."""
    table = pd.DataFrame(rows)
    missing = [name for name in REQUIRED if name not in table]
    if table.empty:
        raise ValueError("there are no rows to report")
    if missing:
        raise ValueError(f"the rows lack {', '.join(missing)}; every row needs {', '.join(REQUIRED)}")
    for name, value in DEFAULTS.items():
        if name not in table:
            table[name] = value
    for name in ("distance", "chance", "exact_match_chance", *(key for key in SCORES if key in table)):
        table[name] = pd.to_numeric(table[name])
    if "first_accuracy" not in table:  # each answer is one token: a guess is as often right on both
        table["exact_match_chance"] = table["exact_match_chance"].fillna(table["chance"])
    table["ceiling"] = pd.to_numeric(table["ceiling"]).fillna(1.0)
    unknown = (math.nan, math.nan)
    ends = [value if isinstance(value, list | tuple) else unknown for value in table.get("train_distance", [])]
    table["nearest_trained"], table["farthest_trained"] = zip(*ends, strict=True) if ends else unknown
    for name in ("panel", "kind", "task_digest"):
        table[name] = table[name].fillna("")
    table["fit"] = table["fit"].astype(bool)
    _refuse_twins(table)
    return table


def _refuse_twins(table: pd.DataFrame) -> None:
    """Two runs of one arm and seed are not two seeds, and their mean is no seed's; the same weights are one seed."""
    if "model_digest" in table:
        for (*_, arm, digest), rows in table.groupby([*PANEL, "arm", "model_digest"]):
            if len(seeds := sorted(rows["seed"].unique())) > 1:
                raise ValueError(
                    f"arm {arm!r} has the same weights ({digest}) under the seeds {', '.join(map(str, seeds))}: "
                    "draws of data are no seeds. Leave all but one out"
                )
    marks = [name for name in ("run", "revision", "step", "model_digest") if name in table]
    runs = table.drop_duplicates([*PANEL, "arm", "seed", *marks])
    for (*_, arm, seed), twins in runs.groupby([*PANEL, "arm", "seed"]):
        if len(twins) > 1:
            first, second = (_describe_run(row, marks) for row in twins.head(2).to_dict("records"))
            raise ValueError(
                f"arm {arm!r} has two runs of seed {seed}: {first}; and {second}. Leave one out, or name one of them apart "
                "and measure it again: posgen evaluate RUN --arm NAME"
            )


def _describe_run(row: dict, marks: list[str]) -> str:
    values = {name: row[name] for name in marks if not pd.isna(row[name])}
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )


def panels(table: pd.DataFrame) -> list[Panel]:
    """Return one panel per study, and per task, kind of question and parameters of the task where a study has several.

    Tasks with other parameters are other tasks: another number of symbols, say, is another chance level."""
    made: list[Panel] = []
    for study, rows in table.groupby("panel"):
        tasks, kinds = rows["task"].nunique(), rows.groupby("task")["kind"].nunique()
        variants = rows.groupby(["task", "kind"])["task_digest"].nunique()
        for (task, kind, digest), part in rows.groupby(["task", "kind", "task_digest"]):
            variant = f"parameters {digest or 'unknown'}" if variants[task, kind] > 1 else ""
            name = [study, task if tasks > 1 or not study else "", kind if kinds[task] > 1 else "", variant]
            study_words = re.sub(r"^study(?=\d)", "Study ", study)
            words = [study_words, task.replace("_", " "), "" if kind in study.split() else kind, variant]
            title = ", ".join(filter(None, words))
            made.append(Panel(part, " ".join(filter(None, name)), title[:1].upper() + title[1:], siblings=made))
    return made
