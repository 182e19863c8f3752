"""The headline numbers, and the differences between arms, as tables."""

from dataclasses import dataclass

from ..results.columns import label
from ..results.contrasts import Contrast, contrasts, untested
from ..results.headlines import (
    ArmHeadlines,
    FarSummary,
    Solved,
    headlines,
    over_all_seeds,
    shown_axes,
    shown_splits,
)
from ..results.panel import Panel
from ..results.shared import name_some
from .tables import Table, chance_over, format_mean, gaps, number


def headline_table(panel: Panel, arms: list[ArmHeadlines]) -> Table:
    """Return what the fitting seeds of each arm solve, and the means over the splits that hold something unseen."""
    splits, axes = shown_splits(panel), shown_axes(panel)
    means = [(split, metric) for split in splits for metric in panel.metrics]
    head = ["arm", *(f"solved up to {axis}" for axis in axes)]
    head += [f"{split}: {label(metric)}" for split, metric in means]
    head += [f"best on {splits[0]}"] if splits else []
    lines = []
    for arm in arms:
        if not arm.fit:
            lines.append([arm.arm, "did not fit", *["-"] * (len(head) - 2)])
            continue
        line = [arm.arm, *(format_solved(arm.solved[axis]) for axis in axes)]
        line += [format_mean(arm.means[key]) for key in means]
        lines.append(line + ([number(arm.best)] if splits else []))
    rows = {metric: panel.shared_values(metric).rows for metric in panel.metrics}
    chances = [chance_over(rows[metric][rows[metric]["split"] == split], metric) for split, metric in means]
    if any(chance != "-" for chance in chances):
        lines.append(["chance", *["-"] * len(axes), *chances, *["-"] * bool(splits)])
    return Table(head, lines)


def format_solved(runs: list[Solved]) -> str:
    """Return up to where runs solve a task: the worst and the best of them."""
    ends = sorted(runs, key=lambda run: -1.0 if run.value is None else run.value)
    worst, best = _solved(ends[0]), _solved(ends[-1])
    return worst if worst == best else f"{worst} to {best}"


def _solved(run: Solved) -> str:
    if run.value is None:
        return f"below {run.smallest:g}"
    return f"≥ {run.value:g}" if run.at_end else f"{run.value:g}"


def far_table(panel: Panel, arms: list[ArmHeadlines]) -> Table | None:
    """Return sum, P with its nulls and W per arm and metric; None where no distance beyond was evaluated."""
    lines = [[arm.arm, label(metric), *_far_line(numbers)] for arm in arms for metric, numbers in arm.far.items()]
    if not lines:
        return None
    distances = panel.along("distance")["distance"]
    head = ["arm", "of", f"sum, d {max(1, distances.min()):g} to {distances.max():g}", "best sum", "P"]
    return Table([*head, "P if it overshot by 5", "P of a 2-gram baseline", "W"], lines)


def _far_line(numbers: FarSummary) -> list[str]:
    return [
        format_mean(numbers.total),
        number(max(numbers.total.values)),
        f"not valid: {numbers.invalid}" if numbers.invalid else format_mean(numbers.ratio),
        number(numbers.overshoot),
        number(numbers.ngram),
        format_mean(numbers.won),
    ]


def contrast_table(found: list[Contrast]) -> Table | None:
    """Return the tested differences; None where there are none."""
    lines = []
    for contrast in found:
        difference = f"{contrast.difference:+.3f}"
        if contrast.interval:
            low, high = contrast.interval
            difference += f" [{low:+.3f}, {high:+.3f}]"
        p = [format_p(contrast.holm_p, contrast.error), format_p(contrast.smallest_p)]
        counts = [str(contrast.pairs), str(contrast.cells)]
        lines.append([contrast.name, *counts, difference, *p, contrast.verdict])
    head = ["contrast", "pairs of seeds", "cells", "mean difference", "p (Holm)", "smallest p possible", "verdict"]
    return Table(head, lines) if lines else None


def format_p(p: float, error: float = 0.0) -> str:
    """Return a p-value with three digits; one by Monte Carlo with its standard error."""
    text = "< 0.001" if p < 0.001 else f"{p:.3f}"
    return f"{text} (Monte Carlo, standard error {error:.1g})" if error else text


def contrast_notes(panel: Panel, found: list[Contrast], pairs: list[tuple[str, str]] | None = None) -> list[str]:
    """Return sentences about the differences: which cells one arm has alone, and which pairs weren't tested and why."""
    notes = [
        f"{contrast.name} is over the {contrast.cells} cells that both have; left out: {name_some(contrast.left_out)}."
        for contrast in found
        if contrast.left_out
    ]
    missing = [f"{pair.first} - {pair.second} ({pair.why})" for pair in untested(panel, found, pairs)]
    return notes + ([f"Not tested: {'; '.join(missing)}."] if missing else [])


@dataclass(frozen=True)
class Section:
    """A heading with a table, sentences below it, or both."""

    title: str
    table: Table | None
    notes: list[str]


def headline_sections(panel: Panel, pairs: list[tuple[str, str]] | None = None) -> list[Section]:
    """Return the headline numbers, those over distances and the tested differences of a panel, as far as it has any.

    pairs: the arms to test (default: all pairs)."""
    arms, found = headlines(panel), contrasts(panel, pairs)
    table = headline_table(panel, arms)
    notes = list(
        filter(None, (panel.shared_values(panel.metrics[0]).sentence, all_seeds_sentence(panel), *gaps(panel)))
    )
    sections = [
        Section("Headline numbers", table if len(table.head) > 1 else None, notes),
        Section("Numbers over distances", far_table(panel, arms), []),
        Section("Differences", contrast_table(found), contrast_notes(panel, found, pairs)),
    ]
    return [section for section in sections if section.table or section.notes]


def all_seeds_sentence(panel: Panel) -> str:
    """Return what the means would be over all seeds, for arms of which some did not fit; empty where there is none."""
    means = [
        f"{arm}, {split}, over all {panel.fits[arm][1]} seeds: {format_mean(mean)}"
        for (arm, split), mean in over_all_seeds(panel).items()
    ]
    return f"Those are over the seeds that fit. {'; '.join(means)}." if means else ""


def run_numbers(panel: Panel) -> dict[str, str]:
    """Return {name: number as text} of a panel that holds one run, for its card; empty for a run that does not fit."""
    (run,) = headlines(panel)
    if not run.fit or not panel.table["fit"].all():
        return {}
    out = {f"solved up to {axis}": format_solved(runs) for axis, runs in run.solved.items()}
    out |= {f"{split}: {label(metric)}": format_mean(mean) for (split, metric), mean in run.means.items()}
    table = far_table(panel, [run])
    for line in table.lines if table else ():
        numbers = dict(zip(table.head, line, strict=True))
        out |= {f"{name}: {numbers['of']}": numbers[name] for name in table.head[2:] if "best" not in name}
    return {name: value for name, value in out.items() if value != "-"}
