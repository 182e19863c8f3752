"""The tables of the console and of report.md."""

from tabulate import tabulate

from ..results.frame import (
    LABELS,
    SHARES,
    Panel,
    axes,
    by_seed,
    encodings,
    fits,
    frame,
    metrics,
    panels,
    references,
    trained_range,
    trained_ranges,
)
from ..results.statistics import clopper_pearson, t_interval

KEYS = ["length", "distance"]


def number(value: float) -> str:
    return f"{value:.2f}"


def over_seeds(values: list[float], clip: bool = True) -> str:
    """A mean with Student's t interval from three seeds on; two seeds as they are; one as it is."""
    if not values:
        return "-"
    mean, interval = sum(values) / len(values), t_interval(values)
    if interval is None:
        return number(mean) if len(values) == 1 else f"{number(mean)} ({' '.join(number(v) for v in sorted(values))})"
    low, high = (max(0.0, interval[0]), min(1.0, interval[1])) if clip else interval
    return f"{number(mean)} [{number(low)}, {number(high)}]"


def heading(arm: str, fitted: int, seeds: int) -> str:
    """An arm's column head: how many seeds stand behind its numbers."""
    if fitted == 0:
        return f"{arm} *\ndid not fit"
    many = "one seed" if fitted == 1 else f"{fitted} seeds"
    return f"{arm}\n{many}" + (f" of {seeds}" if fitted < seeds else "")


def axis_table(
    table, axis: str, metric: str, most: int | None = None, only: list[str] | None = None
) -> tuple[list[str], list[list[str]]]:
    """(head, lines): one line per point of an axis, one column per arm, then chance and the baselines.

    most: about how many points to show (default: all). only: the arms to show (default: all).
    An arm's numbers are those of the seeds that fit; those of an arm that never fitted stand under a starred name.
    """
    seeds, counts = by_seed(table, axis, metric), fits(table)
    arms = [arm for arm in only or encodings(table) if (seeds["arm"] == arm).any()]
    beside = references(table, axis, metric)
    ranges = trained_ranges(table, axis)
    lines = []
    for point in chosen_points(sorted(seeds[axis].unique()), trained_range(table, axis), most):
        inside = any(low <= point <= high for low, high in ranges)
        line = [f"{point:g}{' trained' if inside else ''}"]
        for arm in arms:
            here = seeds[(seeds["arm"] == arm) & (seeds[axis] == point) & (seeds["fit"] == (counts[arm][0] > 0))]
            line.append(over_seeds(here[metric].tolist(), clip=metric in SHARES))
        lines.append(line + [number(values[point]) if point in values else "-" for values in beside.values()])
    return [axis, *(heading(arm, *counts[arm]) for arm in arms), *(name.replace(" ", "\n") for name in beside)], lines


def chosen_points(points: list[float], trained: tuple[float, float], most: int | None) -> list[float]:
    """At most about so many points: the ends of the trained range, the first ones beyond, and some of the others."""
    if most is None or len(points) <= most:
        return points
    inside = [p for p in points if trained[0] <= p <= trained[1]]
    outside = [p for p in points if not trained[0] <= p <= trained[1]]
    keep = {*inside[:1], *inside[-1:], *outside[-1:]}
    near = sorted(outside, key=lambda p: min(abs(p - trained[0]), abs(p - trained[1])))
    keep |= set(near[: most // 4])
    step = max(1, -(-len(outside) // max(1, most - len(keep))))
    return sorted(keep | set(outside[::step]))


def fit_table(table) -> tuple[list[str], list[list[str]]]:
    """How many seeds of each arm learned what they were shown, with the exact interval, and what an arm cost."""
    columns = {
        "parameters": lambda mine: f"{int(mine.iloc[0]):,}",
        "head_size": lambda mine: f"{int(mine.iloc[0])}",
        "tokens_seen": lambda mine: f"{int(mine.max()):,}",
        "train_flops": lambda mine: f"{mine.max():.2g}",
        "lr": lambda mine: f"{mine.iloc[0]:g}",
        "bos": lambda mine: "yes" if mine.iloc[0] else "no",
    }
    names = {"head_size": "head size", "tokens_seen": "tokens seen", "train_flops": "training FLOPs"}
    names |= {"lr": "learning rate", "bos": "anchor token"}
    shown = [name for name in columns if name in table and table[name].notna().all()]
    lines = []
    for arm in encodings(table):
        k, n = fits(table)[arm]
        low, high = clopper_pearson(k, n)
        mine = table[table["arm"] == arm]
        lines.append([arm, f"{k} of {n} [{low:.2f}, {high:.2f}]", *(columns[name](mine[name]) for name in shown)])
    return ["arm", "seeds that fit", *(names.get(name, name) for name in shown)], lines


def caption(panel: Panel, axis: str, metric: str) -> str:
    """What a table shows, and what of it was trained."""
    ranges = [f"{low:g} to {high:g}" if low < high else f"{low:g}" for low, high in trained_ranges(panel.table, axis)]
    return f"{LABELS[metric]} by {axis} (trained: {' and '.join(ranges)})"


def summary_tables(rows: list[dict]) -> str:
    """The console's tables: length × encoding and distance × encoding, each metric apart; what varies neither, by split."""
    blocks, shown = [], panels(frame(rows))
    for panel in shown:
        for axis in axes(panel.table):
            for metric in metrics(panel.table):
                blocks.append(f"{panel.title}: {caption(panel, axis, metric)}\n{_console(panel.table, axis, metric)}")
        if axes(panel.table):
            continue
        if (panel.table["split"] == "both").any():
            blocks.append(f"{panel.title}: new lengths and distances at once\n{_plain(*_both(panel.table))}")
        else:
            tables = "\n\n".join(_plain(*made(panel.table)) for made in (split_table, fit_table))
            blocks.append(f"{panel.title}: nothing was asked beyond the trained range\n{tables}")
    if any(k == 0 for panel in shown for k, _ in fits(panel.table).values()):
        blocks.append("* did not fit in distribution, and so says nothing about generalisation")
    return "\n\n".join(blocks)


def split_table(table) -> tuple[list[str], list[list[str]]]:
    """(head, lines): each split's mean over its cells, then over the seeds that fit."""
    return _means(table, ["split"], lambda mine: [([split], rows) for split, rows in mine.groupby("split", sort=False)])


def _both(table) -> tuple[list[str], list[list[str]]]:
    """The cells where neither axis is as trained, beside the mean in distribution: what a task of tied axes has."""

    def parts(mine):
        cells = mine[mine["split"] == "both"].groupby(KEYS)
        return [(["trained", ""], mine[mine["split"] == "test"]), *(([f"{at:g}" for at in c], r) for c, r in cells)]

    return _means(table, KEYS, parts)


def _means(table, where: list[str], parts) -> tuple[list[str], list[list[str]]]:
    """(head, lines): for every arm and each of `parts`(its rows), (names, rows), the means over the seeds that fit."""
    lines, shown = [], metrics(table)
    for arm, (fitted, seeds) in fits(table).items():
        for names, rows in parts(table[(table["arm"] == arm) & (table["fit"] == (fitted > 0))]):
            values = {metric: rows.groupby("seed")[metric].mean().dropna().tolist() for metric in shown}
            means = [over_seeds(values[metric], clip=metric in SHARES) for metric in shown]
            lines.append([arm if fitted else f"{arm} *", f"{fitted} of {seeds}", *names, *means])
    return ["arm", "seeds that fit", *where, *(LABELS[metric] for metric in shown)], lines


def _console(table, axis: str, metric: str, wide: int = 6) -> str:
    """A table that fits a terminal: at most `wide` arms side by side."""
    arms, out = list(encodings(table)), []
    for start in range(0, len(arms), wide):
        head, lines = axis_table(table, axis, metric, most=14, only=arms[start : start + wide])
        out.append(_plain(head, lines))
    return "\n\n".join(out)


def _plain(head: list[str], lines: list[list[str]]) -> str:
    return tabulate(lines, head, tablefmt="simple", disable_numparse=True, stralign="right")


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A GitHub table."""
    return tabulate(lines, [one.replace("\n", "<br>") for one in head], tablefmt="pipe", disable_numparse=True)
