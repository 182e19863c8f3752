"""A learning rate for each arm, chosen on validation with seeds that are not used afterwards."""

from pathlib import Path

from ..common.files import read_rows
from ..run.build import build_run, merge
from ..run.tree import typed
from .trial import Point


def selection_points(panels: dict[str, dict], arms_of, out: Path) -> list[Point]:
    """One point for each arm, rate and selection seed, under out/selection; validation only. Raises `ValueError` where a
    selection seed is used again."""
    points = []
    for panel, part in panels.items():
        rates, seeds = part.get("learning_rates") or [], part.get("selection_seeds") or []
        if bool(rates) != bool(seeds):
            raise ValueError(f"panel {panel!r} needs both learning_rates and selection_seeds, or neither")
        if again := sorted(set(seeds) & set(part.get("seeds", [0]))):
            raise ValueError(f"panel {panel!r} selects its learning rates on seeds it uses again: {again}")
        rates = [typed(f"panels.{panel}.learning_rates", rate, float) for rate in rates]
        for arm, tree in arms_of(part).items():
            for rate in rates:
                changed = merge(tree, {"train": {"learning_rate": rate}})
                points += [
                    Point(build_run(changed | {"seed": seed, "arm": arm, "panel": panel}), out / "selection", False)
                    for seed in seeds
                ]
    return points


def validation_score(summary: dict) -> tuple[float, float]:
    """What runs and rates are chosen by, more is better: token accuracy, then nats; of text nats alone."""
    return 0.0 if "perplexity" in summary else summary["token_accuracy"], -summary["nll"]


def best_rates(points: list[Point]) -> dict[tuple[str, str], float]:
    """{(panel, arm): rate} by the mean of the last validation over seeds. A rate that failed for a seed counts as worst
    there."""
    scores: dict[tuple, dict[float, list]] = {}
    for point in points:
        checks = [row for row in read_rows(point.folder / "train.jsonl") if row.get("split") == "validation"]
        last = validation_score(checks[-1]) if checks and point.done else (0.0, float("-inf"))
        run = point.run
        scores.setdefault((run.panel, run.arm), {}).setdefault(run.train.learning_rate, []).append(last)

    def mean(values):
        return tuple(sum(part) / len(values) for part in zip(*values, strict=True))

    return {arm: max(rates, key=lambda rate: mean(rates[rate])) for arm, rates in scores.items()}
