"""Runs of study 2: what one model answers, delay by delay."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ...metrics.posgen_extrapolation.headlines import FarNumbers, far_numbers

FIRST, REST, TOKENS = "first_accuracy", "rest_accuracy", "token_accuracy"
ARMS = ("none", "rope", "alibi")


@dataclass(frozen=True)
class StreamRun:
    """One run, evaluated on one kind of copy. panel: the part of the study and its panel, "a full"; for a run that was
    evaluated on both kinds, the kind too."""

    panel: str
    arm: str
    seed: int
    fit: bool
    parameters: int
    rows: list[dict]
    folder: Path | None = None

    @property
    def trained(self) -> tuple[int, int]:
        """The smallest and the largest trained delay."""
        return tuple(self.rows[0]["train_distance"])

    @cached_property
    def points(self) -> dict[int, dict]:
        """The run's rows {delay: row} at the trained window."""
        rows = [row for row in self.rows if row["length"] == row["train_length"] and row["split"] != "validation"]
        return {row["distance"]: row for row in sorted(rows, key=lambda row: row["distance"])}

    def curve(self, metric: str = FIRST) -> dict[int, float]:
        """Return {delay: accuracy} at the trained window."""
        return {d: row[metric] for d, row in self.points.items() if row[metric] is not None}

    def far(self, metric: str = FIRST) -> FarNumbers:
        """Return the sum over all delays, P with its nulls, and W."""
        floor, ceiling = ({d: row[key] for d, row in self.points.items()} for key in ("chance", "ceiling"))
        ngram = {d: row["baselines"]["ngram_2"] for d, row in self.points.items()}
        return far_numbers(self.curve(metric), self.trained[1], floor, ceiling, ngram)

    @property
    def beyond(self) -> float:
        """Accuracy of the first pasted token, summed over the delays beyond the trained ones."""
        return sum(value for d, value in self.curve().items() if d > self.trained[1])

    def mean(self, distances: range, metric: str = TOKENS) -> float:
        """Return the mean accuracy over the delays of a region that were evaluated."""
        return float(np.mean([value for d, value in self.curve(metric).items() if d in distances]))


def streams(rows: list[dict], folders: dict[str, Path], part: str) -> list[StreamRun]:
    """Return the runs of one part of the study from its rows. folders: {run: its folder}."""
    rows_by_run, kinds = defaultdict(list), defaultdict(set)
    for row in rows:
        rows_by_run[row["run"], row["kind"]].append(row)
        kinds[row["run"]].add(row["kind"])
    runs = []
    for (name, kind), run_rows in rows_by_run.items():
        first = run_rows[0]
        panel = f"{part} {first['panel']}" + (f" {kind}" if len(kinds[name]) > 1 else "")
        facts = {key: first[key] for key in ("arm", "seed", "fit", "parameters")}
        runs.append(StreamRun(panel, **facts, rows=run_rows, folder=folders.get(name)))
    return runs
