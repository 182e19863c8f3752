"""Runs of study 2: what one model answers, delay by delay, and how arms and panels compare seed by seed."""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ...metrics.posgen_extrapolation.headlines import FarNumbers, far_numbers
from ...results.statistics import sign_flip, t_interval, underpowered
from ..verdicts import NOT, NOT_JUDGED, Verdict, of

FIRST, REST, TOKENS = "first_accuracy", "rest_accuracy", "token_accuracy"
ARMS = ("none", "rope", "alibi")
PAPER_SIZE = 20_000_000  # parameters; 8 layers of 512 have 25 million


@dataclass(frozen=True)
class StreamRun:
    """One run, asked one kind of copy. panel: the part of the study and its panel, "a full"; for a run that was asked both
    kinds, the kind too."""

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
        """{delay: its row} at the trained window."""
        asked = [row for row in self.rows if row["length"] == row["train_length"] and row["split"] != "validation"]
        return {row["distance"]: row for row in sorted(asked, key=lambda row: row["distance"])}

    def curve(self, metric: str = FIRST) -> dict[int, float]:
        """{delay: accuracy} at the trained window."""
        return {d: row[metric] for d, row in self.points.items() if row[metric] is not None}

    def far(self, metric: str = FIRST) -> FarNumbers:
        """Sum over all delays, P with its nulls, W."""
        beside = ({d: row[key] for d, row in self.points.items()} for key in ("chance", "ceiling"))
        ngram = {d: row["baselines"]["ngram_2"] for d, row in self.points.items()}
        return far_numbers(self.curve(metric), self.trained[1], *beside, ngram)

    @property
    def beyond(self) -> float:
        """Accuracy of the first pasted token, summed over the delays beyond the trained ones."""
        return sum(value for d, value in self.curve().items() if d > self.trained[1])

    def mean(self, distances: range, metric: str = TOKENS) -> float:
        """Over the delays of a region that were asked."""
        return float(np.mean([value for d, value in self.curve(metric).items() if d in distances]))


def streams(rows: list[dict], folders: dict[str, Path], part: str) -> list[StreamRun]:
    """The runs of one part of the study from its rows. folders: {run: its folder}."""
    runs, by_run = [], defaultdict(list)
    for row in rows:
        by_run[row["run"], row["kind"]].append(row)
    kinds = defaultdict(set)
    for name, kind in by_run:
        kinds[name].add(kind)
    for (name, kind), mine in by_run.items():
        first = mine[0]
        panel = f"{part} {first['panel']}" + (f" {kind}" if len(kinds[name]) > 1 else "")
        facts = (first["arm"], first["seed"], first["fit"], first["parameters"])
        runs.append(StreamRun(panel, *facts, mine, folders.get(name)))
    return runs


def paired(runs: list, left: tuple[str, str], right: tuple[str, str], number) -> np.ndarray:
    """number(run) of one (panel, arm) less that of another, over the seeds where both fit, in the seeds' order."""
    a, b = ({run.seed: run for run in of(runs, *side)} for side in (left, right))
    return np.array([number(a[seed]) - number(b[seed]) for seed in sorted(a.keys() & b.keys())])


def contrast(differences: np.ndarray, p: float | None, contrasts: int) -> dict:
    """A paired contrast for reading. p: by the exact sign-flip test, corrected for so many contrasts."""
    low, high = t_interval(differences) or (None, None)
    rounded = lambda value: None if value is None else float(f"{value:.4g}")  # noqa: E731
    mean = differences.mean() if len(differences) else None
    out = {"pairs": len(differences), "difference": rounded(mean), "low": rounded(low), "high": rounded(high)}
    return out | {"p": rounded(p), "underpowered": underpowered(len(differences), contrasts)}


def raw_p(differences: np.ndarray) -> float:
    """Of the exact sign-flip test; 1 where there is no pair."""
    return sign_flip(differences[:20]) if len(differences) else 1.0


def sized(verdict: Verdict, runs: list[StreamRun], needs_paper_size: bool = False) -> Verdict:
    """With the models' size in the reason, and no refutation by small models. needs_paper_size: nor a confirmation."""
    if not runs:
        return replace(verdict, verdict=NOT_JUDGED, why="not run")
    smallest, largest = (f(run.parameters for run in runs) for f in (min, max))
    span = f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    why = f"{verdict.why} (models of {span} parameters)"
    small = largest < PAPER_SIZE
    if small and needs_paper_size:
        return replace(verdict, verdict=NOT_JUDGED, why=f"{why}: the claim is about 8 layers of width 512")
    if small and verdict.verdict == NOT:
        return replace(verdict, verdict=NOT_JUDGED, why=f"{why}: small models refute nothing")
    return replace(verdict, why=why)
