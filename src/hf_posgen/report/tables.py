"""The tables of the console and of report.md."""

import math
from dataclasses import dataclass

from tabulate import tabulate

from ..results.aggregate import SeedMean, over_seeds
from ..results.columns import SCORES, label
from ..results.frame import frame, panels
from ..results.panel import Panel
from ..results.shared import cell_name, name_some, shared_cells
from ..results.statistics import clopper_pearson
from .captions import caption
from .escape import for_markdown

KEYS = ["length", "distance"]
WIDE = 6  # arms side by side on a terminal


@dataclass(frozen=True)
class Table:
    """The head of every column, and the lines below it."""

    head: list[str]
    lines: list[list[str]]

    def markdown(self) -> str:
        """Return it as a GitHub table."""
        head = ["<br>".join(map(for_markdown, name.split("\n"))) for name in self.head]
        lines = [[for_markdown(cell) for cell in line] for line in self.lines]
        return tabulate(lines, head, tablefmt="pipe", disable_numparse=True)

    def plain(self) -> str:
        """Return it as text for a terminal."""
        return tabulate(self.lines, self.head, tablefmt="simple", disable_numparse=True, stralign="right")


def number(value: float | None) -> str:
    """Return a number with two digits, or a dash."""
    return "-" if value is None else f"{value:.2f}"


def format_mean(mean: SeedMean | None) -> str:
    """Return a mean with its interval from three seeds on; two seeds beside their mean; one seed as it is."""
    if mean is None:
        return "-"
    if mean.low is not None:
        return f"{number(mean.mean)} [{number(mean.low)}, {number(mean.high)}]"
    return number(mean.mean) if mean.n == 1 else f"{number(mean.mean)} ({' '.join(map(number, sorted(mean.values)))})"


def heading(arm: str, fitted: int, seeds: int) -> str:
    """Return the head of an arm's column, which says over how many seeds its numbers are."""
    if fitted == 0:
        return f"{arm} *\ndid not fit"
    return f"{arm}\n{_seeds(fitted)}" + (f" of {seeds}" if fitted < seeds else "")


def _seeds(n: int) -> str:
    return "one seed" if n == 1 else f"{n} seeds"


def axis_table(panel: Panel, axis: str, metric: str, most: int | None = None, only: list[str] | None = None) -> Table:
    """Return one line per point of an axis, one column per arm, then chance and the baselines.

    most: about how many points to show (default: all). only: the arms to show (default: all).
    An arm's numbers are those of the seeds that fit; those of an arm that never fitted stand under a starred name.
    """
    seeds, bounds = panel.by_seed(axis, metric), SCORES[metric].bounds
    seeds = seeds[seeds["fit"] == seeds["arm"].map(lambda arm: panel.fits[arm][0] > 0)]
    known = set(seeds["arm"])
    arms = [arm for arm in only or panel.arms if arm in known]
    values = {key: list(group) for key, group in seeds.groupby(["arm", axis])[metric]}
    references, ranges = panel.references(axis, metric), panel.trained_ranges(axis)
    lines = []
    for point in chosen_points(sorted(seeds[axis].unique()), panel.trained_range(axis), most):
        trained = any(low <= point <= high for low, high in ranges)
        line = [f"{point:g}{' trained' if trained else ''}"]
        for arm in arms:
            mean = over_seeds(values.get((arm, point), ()), bounds)
            fewer = mean is not None and mean.n < (panel.fits[arm][0] or panel.fits[arm][1])
            line.append(format_mean(mean) + (f", {_seeds(mean.n)}" if fewer else ""))
        lines.append(line + [number(curve.get(point)) for curve in references.values()])
    names = [name.replace(" ", "\n") for name in references]
    return Table([axis, *(heading(arm, *panel.fits[arm]) for arm in arms), *names], lines)


def chosen_points(points: list[float], trained: tuple[float, float], most: int | None) -> list[float]:
    """Return at most about so many points: the ends of the trained range, the first ones beyond, and some others."""
    if most is None or len(points) <= most:
        return points
    inside = [p for p in points if trained[0] <= p <= trained[1]]
    outside = [p for p in points if not trained[0] <= p <= trained[1]]
    keep = {*inside[:1], *inside[-1:], *outside[-1:]}
    near = sorted(outside, key=lambda p: min(abs(p - trained[0]), abs(p - trained[1])))
    keep |= set(near[: most // 4])
    step = max(1, -(-len(outside) // max(1, most - len(keep))))
    return sorted(keep | set(outside[::step]))


FACTS = {  # column: (heading, how an arm's value is written)
    "parameters": ("parameters", lambda column: f"{int(column.iloc[0]):,}"),
    "head_size": ("head size", lambda column: f"{int(column.iloc[0])}"),
    "tokens_seen": ("tokens seen", lambda column: f"{int(column.max()):,}"),
    "train_flops": ("training FLOPs", lambda column: f"{column.max():.2g}"),
    "lr": ("learning rate", lambda column: f"{column.iloc[0]:g}"),
    "bos": ("anchor token", lambda column: "yes" if column.iloc[0] else "no"),
}


def fit_table(panel: Panel) -> Table:
    """Return how many seeds of each arm learned what they were shown, with the exact interval, and what an arm cost."""
    shown = [name for name in FACTS if name in panel.table and panel.table[name].notna().all()]
    lines = []
    for arm in panel.arms:
        fitted, seeds = panel.fits[arm]
        low, high = clopper_pearson(fitted, seeds)
        rows = panel.arm(arm).table
        cost = [FACTS[name][1](rows[name]) for name in shown]
        lines.append([arm, f"{fitted} of {seeds} [{low:.2f}, {high:.2f}]", *cost])
    return Table(["arm", "seeds that fit", *(FACTS[name][0] for name in shown)], lines)


def split_table(panel: Panel) -> Table:
    """Return each split's mean over the cells that all arms share, then over the seeds that fit."""

    def parts(rows):
        return [([split], part) for split, part in rows.groupby("split", sort=False)]

    return _means(panel, ["split"], parts, shared_cells(shown_runs(panel)).rows)


def both_table(panel: Panel) -> Table:
    """Return the cells where neither axis is as trained, beside the mean in distribution: what a task of tied axes has."""

    def parts(rows):
        cells = rows[rows["split"] == "both"].groupby(KEYS)
        return [(["trained", ""], rows[rows["split"] == "test"]), *(([f"{at:g}" for at in c], r) for c, r in cells)]

    return _means(panel, KEYS, parts, shown_runs(panel))


def shown_runs(panel: Panel):
    """Return the rows of the seeds that fit, and of an arm where none does all."""
    unfit = [arm for arm, (fitted, _) in panel.fits.items() if not fitted]
    return panel.table[panel.table["fit"] | panel.table["arm"].isin(unfit)]


def _means(panel: Panel, where: list[str], parts, rows) -> Table:
    """Return, for every arm and each (names, rows) of `parts(its rows)`, the means over its seeds."""
    guessed = [
        metric for metric in panel.metrics if SCORES[metric].chance and rows[SCORES[metric].chance].notna().any()
    ]
    head = []
    for metric in panel.metrics:
        head += [label(metric), *([f"{label(metric)}: chance"] if metric in guessed else [])]
    lines = []
    for arm, (fitted, seeds) in panel.fits.items():
        for names, part in parts(rows[rows["arm"] == arm]):
            line = [arm if fitted else f"{arm} *", f"{fitted} of {seeds}", *names]
            for metric in panel.metrics:
                values = part.groupby("seed")[metric].mean().dropna()
                line.append(format_mean(over_seeds(values, SCORES[metric].bounds)))
                line += [chance_over(part, metric)] if metric in guessed else []
            lines.append(line)
    return Table(["arm", "seeds that fit", *where, *head], lines)


def chance_over(rows, metric: str) -> str:
    """Return what a guess that reads nothing scores of this very score, over the rows that have it; a dash if unknown."""
    column = SCORES[metric].chance
    values = rows.dropna(subset=[metric])[column].dropna() if column else rows.iloc[:0]
    return f"{values.mean():.2g}" if len(values) else "-"


def without_score(panel: Panel, metric: str) -> str:
    """Return a sentence that names the cells of runs whose score is missing, and why; empty where none is. No mean holds
    them."""
    rows, cells = shown_runs(panel), {}
    for row in rows[rows[metric].isna()].to_dict("records"):
        why = row.get("problem") if isinstance(row.get("problem"), str) else "the row doesn't say why"
        cells.setdefault((f"{row['arm']} seed {row['seed']}", why), []).append(
            cell_name(row["split"], row["length"], -1.0 if math.isnan(row["distance"]) else row["distance"])
        )
    named = [f"{run}: {name_some(names)} ({why})" for (run, why), names in cells.items()]
    return f"Without {label(metric)}, and in no mean of it: {'; '.join(named)}." if named else ""


def gaps(panel: Panel) -> list[str]:
    """Return `without_score` of every score that is shown, where it names any cell."""
    return list(filter(None, (without_score(panel, metric) for metric in panel.metrics)))


def summary_tables(rows: list[dict]) -> str:
    """Return the console's tables: each score by length and by distance, and by split where neither varies.

    Raises `ValueError` as `frame` does."""
    shown = panels(frame(rows))
    blocks = [block for panel in shown for block in _panel_tables(panel)]
    if any(fitted == 0 for panel in shown for fitted, _ in panel.fits.values()):
        blocks.append("* did not fit in distribution, so nothing can be concluded about its generalisation")
    return "\n\n".join(blocks)


def _panel_tables(panel: Panel) -> list[str]:
    if panel.axes:
        tables = [
            f"{panel.title}: {caption(panel, axis, metric)}\n{_console(panel, axis, metric)}"
            for axis in panel.axes
            for metric in panel.metrics
        ]
        return tables + gaps(panel)
    if (panel.table["split"] == "both").any():
        return [f"{panel.title}: new lengths and distances at once\n{both_table(panel).plain()}", *gaps(panel)]
    blocks = [
        split_table(panel).plain(),
        shared_cells(shown_runs(panel)).sentence,
        *gaps(panel),
        fit_table(panel).plain(),
    ]
    tables = "\n\n".join(filter(None, blocks))
    return [f"{panel.title}: nothing was evaluated beyond the trained range\n{tables}"]


def _console(panel: Panel, axis: str, metric: str) -> str:
    """Return tables that fit a terminal: a few arms side by side."""
    arms = list(panel.arms)
    some = [arms[start : start + WIDE] for start in range(0, len(arms), WIDE)]
    return "\n\n".join(axis_table(panel, axis, metric, most=14, only=only).plain() for only in some)
