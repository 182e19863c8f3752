"""A learning rate for each arm, chosen on validation with seeds that are not used afterwards."""

from pathlib import Path

from ..run.build import build_run, merge
from .folder import SweepFolder
from .spec import SweepSpec
from .trial import Trial


def selection_trials(spec: SweepSpec, out: Path) -> list[Trial]:
    """Return one trial for each arm, rate and selection seed, in the sweep's selection folder; validation only."""
    parent, trials = SweepFolder(out).selection, []
    for panel in spec.panels:
        for arm, config in panel.arms.items():
            for rate in panel.learning_rates:
                changed = merge(config, {"train": {"learning_rate": rate}}) | {"arm": arm, "panel": panel.name}
                runs = [build_run(changed | {"seed": seed}) for seed in panel.selection_seeds]
                trials += [Trial(run, parent, evaluate=False) for run in runs]
    return trials


def validation_score(summary: dict) -> tuple[float, float]:
    """Return what runs and rates are chosen by, more is better: token accuracy, then nats; of text nats alone."""
    return 0.0 if "perplexity" in summary else summary["token_accuracy"], -summary["nll"]


def best_rates(trials: list[Trial]) -> dict[tuple[str, str], float]:
    """Return {(panel, arm): rate} by the mean of the last validation over seeds. A rate that failed for a seed counts as
    worst there."""
    scores: dict[tuple, dict[float, list]] = {}
    for trial in trials:
        checks = trial.files.validations()
        last = validation_score(checks[-1]) if checks and trial.done else (0.0, float("-inf"))
        rates = scores.setdefault((trial.run.panel, trial.run.arm), {})
        rates.setdefault(trial.run.train.learning_rate, []).append(last)

    def mean(values):
        return tuple(sum(part) / len(values) for part in zip(*values, strict=True))

    return {arm: max(rates, key=lambda rate: mean(rates[rate])) for arm, rates in scores.items()}
