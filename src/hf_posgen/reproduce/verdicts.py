"""What a claim is judged on: runs with their rows and analyses, and verdicts."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..results.aggregate import over_seeds
from ..run.folder import RunFolder

ENOUGH = 6  # fitted seeds; below, nothing is judged
REPRODUCED, PARTLY, NOT, NOT_JUDGED = "reproduced", "partly reproduced", "not reproduced", "not judged"


@dataclass(frozen=True)
class Run:
    """One run: accuracy and the bag-of-words accuracy by length, and what analysis.json holds."""

    panel: str
    arm: str
    encoding: str
    seed: int
    fit: bool
    parameters: int
    accuracy: dict[int, float]
    bag_of_words: dict[int, float]
    analysis: dict = field(default_factory=dict)
    folder: Path | None = None

    def head(self, name: str) -> dict:
        """Return the first head's entry of an analysis."""
        return self.analysis[name]["heads"][0]


@dataclass(frozen=True)
class Verdict:
    """A judgement. claim: its number; statement: the claim in a sentence; threshold: written down before the run; reason:
    what decided; numbers: what was measured, as nested dicts."""

    claim: str
    statement: str
    threshold: str
    verdict: str
    reason: str
    numbers: dict


def collect(rows: list[dict], out: Path) -> list[Run]:
    """Return the runs of a sweep from its rows and the analysis.json of each run folder."""
    rows_by_run = defaultdict(list)
    for row in rows:
        rows_by_run[row["run"]].append(row)
    runs = []
    for name, run_rows in rows_by_run.items():
        first, folder = run_rows[0], RunFolder(out / name)
        runs.append(
            Run(
                panel=first["panel"],
                arm=first["arm"],
                encoding=first["encoding"],
                seed=first["seed"],
                fit=first["fit"],
                parameters=first["parameters"],
                accuracy={row["length"]: row["exact_match"] for row in run_rows},
                bag_of_words={row["length"]: row["baselines"].get("bag_of_words") for row in run_rows},
                analysis=folder.analysis_results(),
                folder=folder.path,
            )
        )
    return runs


def runs_of(runs: list, panel: str, arm: str, fitted: bool = True) -> list:
    """Return the runs of an arm in a panel, by seed: those that fit, or all."""
    chosen = [run for run in runs if (run.panel, run.arm) == (panel, arm) and (run.fit or not fitted)]
    return sorted(chosen, key=lambda run: run.seed)


def summary(values) -> dict:
    """Return mean and Student's t interval over seeds (None below 3), rounded for reading."""
    mean = over_seeds(value for value in values if value is not None)
    if mean is None:
        return {"n": 0, "mean": None, "low": None, "high": None}
    return {"n": mean.n, "mean": rounded(mean.mean), "low": rounded(mean.low), "high": rounded(mean.high)}


def rounded(value) -> float | None:
    """Return a number with four significant digits; None for None."""
    return None if value is None else float(f"{value:.4g}")


def holds_for(runs: list, condition: Callable[[list], bool]) -> bool | None:
    """Return whether a condition holds for an arm's fitted runs; None with too few of them to judge."""
    return bool(condition(runs)) if len(runs) >= ENOUGH else None


def combine(parts: dict[str, bool | None], because: str = f"fewer than {ENOUGH} fitted seeds") -> tuple[str, str]:
    """Return the verdict and its reason from named parts: all hold, some, none; parts that can't be judged (None) are
    named, and `because` says why."""
    held = [name for name, value in parts.items() if value]
    failed = [name for name, value in parts.items() if value is False]
    unknown = [name for name, value in parts.items() if value is None]
    groups = (("holds", held), ("fails", failed), (because, unknown))
    reason = "; ".join(f"{word}: {', '.join(names)}" for word, names in groups if names)
    if not held and not failed:
        return NOT_JUDGED, reason
    if not held:
        return NOT, reason
    return (REPRODUCED if not failed and not unknown else PARTLY), reason
