"""What a claim is judged on: runs with their rows and analyses, and verdicts."""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..results.statistics import t_interval

ENOUGH = 6  # fitted seeds; below, nothing is judged
REPRODUCED, PARTLY, NOT, NOT_JUDGED = "reproduced", "partly", "not", "not judged"


@dataclass(frozen=True)
class Run:
    """One run: accuracy and the bag-of-words accuracy by length, and what analysis.json holds."""

    panel: str
    arm: str
    seed: int
    fit: bool
    parameters: int
    accuracy: dict[int, float]
    bag_of_words: dict[int, float]
    analysis: dict = field(default_factory=dict)
    folder: Path | None = None

    def head(self, name: str) -> dict:
        """The first head's entry of an analysis."""
        return self.analysis[name]["heads"][0]


@dataclass(frozen=True)
class Verdict:
    """claim: its number; said: in a sentence; threshold: written down before the run; why: what decided."""

    claim: str
    said: str
    threshold: str
    verdict: str
    why: str
    numbers: dict


def collect(rows: list[dict], out: Path) -> list[Run]:
    """Runs from the rows of a sweep and the analysis.json of each run folder."""
    by_run = defaultdict(list)
    for row in rows:
        by_run[row["run"]].append(row)
    runs = []
    for name, mine in by_run.items():
        file = out / name / "analysis.json"
        first = mine[0]
        runs.append(
            Run(
                first["panel"],
                first["arm"],
                first["seed"],
                first["fit"],
                first["parameters"],
                {row["length"]: row["exact_match"] for row in mine},
                {row["length"]: row["baselines"].get("bag_of_words") for row in mine},
                json.loads(file.read_text()) if file.is_file() else {},
                out / name,
            )
        )
    return runs


def of(runs: list[Run], panel: str, arm: str, fitted: bool = True) -> list[Run]:
    """The runs of an arm, by seed: those that fit, or all."""
    mine = [run for run in runs if (run.panel, run.arm) == (panel, arm) and (run.fit or not fitted)]
    return sorted(mine, key=lambda run: run.seed)


def summary(values) -> dict:
    """Mean and Student's t interval over seeds (None below 3), rounded for reading."""
    values = [value for value in values if value is not None]
    if not values:
        return {"n": 0, "mean": None, "low": None, "high": None}
    low, high = t_interval(values) or (None, None)
    rounded = lambda value: None if value is None else float(f"{value:.4g}")  # noqa: E731
    return {"n": len(values), "mean": rounded(np.mean(values)), "low": rounded(low), "high": rounded(high)}


def part(runs: list[Run], condition: Callable[[list[Run]], bool]) -> bool | None:
    """Whether a condition holds for an arm's fitted runs; None with too few of them to judge."""
    return bool(condition(runs)) if len(runs) >= ENOUGH else None


def combine(parts: dict[str, bool | None], because: str = f"fewer than {ENOUGH} fitted seeds") -> tuple[str, str]:
    """The verdict and its reason from named parts: all hold, some, none; parts that can't be judged (None) are named, and
    `because` says why."""
    held = [name for name, value in parts.items() if value]
    failed = [name for name, value in parts.items() if value is False]
    unknown = [name for name, value in parts.items() if value is None]
    groups = (("holds", held), ("fails", failed), (because, unknown))
    why = "; ".join(f"{word}: {', '.join(names)}" for word, names in groups if names)
    if not held and not failed:
        return NOT_JUDGED, why
    if not held:
        return NOT, why
    return (REPRODUCED if not failed and not unknown else PARTLY), why
