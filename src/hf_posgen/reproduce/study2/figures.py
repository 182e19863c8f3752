"""The figures of study 2's reproduction: one message each, from whatever was run."""

from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from ...common.files import read_rows
from ...plotting import LOOK, REFERENCES, SHADE, grid, legend, reference_lines, save
from ...report.captions import facts
from ...report.curves import curve
from ...report.style import Style, styles
from ...report.two_by_two import two_by_two
from ...results.columns import label
from ...results.frame import frame, panels
from ...results.panel import Panel
from ...results.statistics import clopper_pearson, t_interval
from ..verdicts import of
from .claims import by_range, widths
from .evaluated import grid_rows
from .streams import ARMS, FIRST, REST, TOKENS, StreamRun

OTHER = "#d9e3ee"  # the other task's trained delays
NAMES = {"full": "full copies (C)", "selective": "selective copies (S)"}


def figures(runs: list[StreamRun], out: Path, study1: Path | None = None) -> list[Path]:
    """Draw what the runs allow; returns the files. study1: that study's folder, for the side panel of the 2 x 2."""
    made = {
        "study2_delays": delays(runs),
        "study2_diversity": diversity(runs),
        "study2_transfer": transfer(runs, "c"),
        "study2_transfer_separated": transfer(runs, "c-separated"),
        "study2_size": size(runs),
    }
    with matplotlib.rc_context(LOOK):
        paths = [save(figure, out / name) for name, figure in made.items() if figure is not None]
    found = panels(frame(rows)) if (rows := grid_rows(runs)) else []
    beside = panels(frame(read_rows(study1 / "results.jsonl"))) if study1 else []
    return paths + [path for panel in found for path in two_by_two(replace(panel, siblings=beside), out)]


def styled(draw):
    """A figure in the reports' look, or None where nothing was run for it."""

    def drawn(runs, *more):
        with matplotlib.rc_context(LOOK):
            return draw(runs, *more)

    return drawn


def panel_of(runs: list[StreamRun], name: str) -> Panel:
    rows = [row for run in runs if run.panel == name for row in run.rows]
    return Panel(frame(rows), name, name)


@styled
def delays(runs: list[StreamRun]):
    """Claim A: accuracy against the delay, first pasted token and rest apart, C above S."""
    names = [kind for kind in NAMES if any(run.panel == f"a {kind}" for run in runs)]
    if not names:
        return None
    figure, all_axes = grid(len(names), 2, 5.2, 3.3)
    handles = []
    for row, kind in zip(all_axes, names, strict=True):
        panel = panel_of(runs, f"a {kind}")
        for ax, metric in zip(row, (FIRST, REST), strict=True):
            handles += curve(ax, panel, "distance", metric)
            ax.set_xlabel("delay between the marks (tokens)" if kind == names[-1] else "")
            ax.set_ylabel("accuracy" if metric == FIRST else "")
            ax.set_title(f"{NAMES[kind]}: {label(metric)}", pad=14, fontweight="bold")
    legend(figure, handles, 4)
    return headed(figure, "Unseen delays", [run for run in runs if run.panel.startswith("a ")])


def headed(figure, title: str, runs: list[StreamRun]):
    """With what must stand on every figure; the same arm of two panels is two arms here."""
    rows = [row | {"arm": f"{run.panel} {run.arm}"} for run in runs for row in run.rows]
    figure.suptitle(f"{title}\n{facts(Panel(frame(rows)))}", fontsize=10, ha="left", x=0.02)
    return figure


def looks() -> dict[str, Style]:
    return styles({arm: arm for arm in ARMS})


def points(ax, style: Style, x, groups: list[list[float]], label: str | None = None, **more) -> Line2D:
    """Means over seeds with Student's intervals, joined; from fewer than three seeds the means alone."""
    means = [float(np.mean(values)) for values in groups]
    ends = [t_interval(values) or (mean, mean) for values, mean in zip(groups, means, strict=True)]
    errors = np.abs(np.array(ends).T - np.array(means))
    look = marked(style) | {"lw": 1.8} | more
    ax.errorbar(x, means, yerr=errors, elinewidth=1.0, capsize=2.5, **look)
    return Line2D([], [], label=label, **look)


def marked(style: Style) -> dict:
    """An arm's colour, marker and line; a second arm of one encoding is hollow and dashed."""
    fill = "white" if style.variant else style.colour
    return {"color": style.colour, "marker": style.marker, "ls": style.dash, "ms": 6, "lw": 1.5, "mfc": fill}


@styled
def diversity(runs: list[StreamRun]):
    """Claim B: what is won beyond the trained delays, and P with its nulls, against how many delays were trained."""
    names = by_range(runs)
    if len(names) < 2:
        return None
    figure, ((left, right),) = grid(1, 2, 5.2, 3.7)
    handles, look, void = [], looks(), False
    for arm in ARMS:
        fitted = {count: of(runs, name, arm) for count, name in names.items()}
        fitted = {count: mine for count, mine in fitted.items() if mine}
        if not fitted:
            continue
        won = {count: [run.far().won for run in mine] for count, mine in fitted.items()}
        handles.append(points(left, look[arm], list(won), list(won.values()), arm))
        for valid, fill in ((True, look[arm].colour), (False, "white")):
            some = {
                n: [r.far(TOKENS).ratio for r in mine]
                for n, mine in fitted.items()
                if valid == (not mine[0].far(TOKENS).invalid)
            }
            void |= bool(some) and not valid
            if some:
                points(right, look[arm], list(some), list(some.values()), mfc=fill, ls="none" if not valid else "-")
    nulls = {"overshoots by 5 whatever was trained": "overshoot", "2-gram baseline, blind to the delay": "ngram"}
    for (text, key), dash in zip(nulls.items(), ((0, (4, 3)), (0, (3, 1.2, 1, 1.2))), strict=True):
        values = [next(getattr(run.far(TOKENS), key) for run in runs if run.panel == name) for name in names.values()]
        right.plot(list(names), values, color="#777777", lw=1.1, ls=dash, zorder=1)
        handles.append(Line2D([], [], color="#777777", lw=1.1, ls=dash, label=text))
    middle = np.array(left.get_ylim()).clip(0.1).prod() ** 0.5 / np.prod(list(names)) ** (1 / len(names))
    left.plot(list(names), [middle * count for count in names], color="#bbbbbb", lw=1.1, ls=(0, (1, 1.5)), zorder=1)
    handles.append(Line2D([], [], color="#bbbbbb", lw=1.1, ls=(0, (1, 1.5)), label="in proportion"))
    left.set(title="first pasted token: delays won beyond, W", ylabel="delays", yscale="log")
    right.set(
        title="all pasted tokens: P" + (" (hollow: not valid)" if void else ""), yscale="log", ylabel="beyond / within"
    )
    for ax in (left, right):
        counts(ax, list(names), "trained delays")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.grid(color="#e4e4e4", lw=0.6)
    figure.legend(handles=handles, loc="outside lower center", ncol=3, frameon=False, fontsize=8.5)
    mine = [run for run in runs if run.panel in names.values()]
    return headed(figure, "More trained delays, full copies", mine)


def counts(ax, values: list[int], what: str) -> None:
    """A logarithmic axis with a tick at each of some counts."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(values))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(values, [str(value) for value in values])
    ax.set_xlabel(what)


@styled
def transfer(runs: list[StreamRun], study: str):
    """Claim C: each task alone and in the mixture, at the same exposure, against the delay."""
    if not any(run.panel.startswith(f"{study} mixed") for run in runs):
        return None
    (figure, all_axes), known = grid(2, len(ARMS), 3.6, 3.0), {}
    for row, (kind, other) in zip(all_axes, (("full", "selective"), ("selective", "full")), strict=True):
        for ax, arm in zip(row, ARMS, strict=True):
            for task, colour in ((other, OTHER), (kind, SHADE)):
                low, high = next(run.trained for run in runs if run.panel == f"{study} mixed {task}")
                ax.axvspan(low, high, color=colour, lw=0, zorder=0)
            known |= beside(ax, runs, f"{study} mixed {kind}")
            lines(ax, of(runs, f"{study} {kind}", arm), (0, (3, 2)), "#777777")
            lines(ax, of(runs, f"{study} mixed {kind}", arm), "-", looks()[arm].colour)
            ax.set(ylim=(-0.03, 1.05), title=f"{arm}: {NAMES[kind]}")
            ax.grid(axis="y", color="#e4e4e4", lw=0.6)
            ax.set_ylabel("token accuracy" if arm == ARMS[0] else "")
            ax.set_xlabel("delay (tokens)" if kind == "selective" else "")
    handles = [
        Line2D([], [], color="#222222", lw=1.8, label="both tasks in one stream"),
        Line2D([], [], color="#777777", lw=1.4, ls=(0, (3, 2)), label="this task alone, same exposure"),
        Line2D([], [], color=OTHER, lw=7, label="the other task's trained delays"),
        *known.values(),
    ]
    legend(figure, handles, 4)
    mine = [run for run in runs if run.panel.startswith(f"{study} ")]
    return headed(figure, "What one task gains or loses by the other", mine)


def beside(ax, runs: list[StreamRun], panel: str) -> dict[str, Line2D]:
    """Draws chance, ceiling and n-gram baselines of all pasted tokens, which hang on the task alone; {name: its handle}."""
    handles = reference_lines(ax, panel_of(runs, panel).references("distance", TOKENS))
    return {handle.get_label(): handle for handle in handles}


def lines(ax, runs: list[StreamRun], dash, colour: str) -> None:
    """The mean over fitted seeds with its interval."""
    if not runs:
        return
    x = sorted(runs[0].points)
    values = np.array([[run.points[d][TOKENS] for d in x] for run in runs])
    ax.plot(x, values.mean(0), color=colour, ls=dash, lw=1.6)
    if len(runs) >= 3:
        ends = np.clip([t_interval(column) for column in values.T], 0, 1)
        ax.fill_between(x, *ends.T, color=colour, alpha=0.17, lw=0)


@styled
def size(runs: list[StreamRun]):
    """The shares that fit, and how far the fitted ones hold, against the width."""
    names = widths(runs)
    if len({width for width, _ in names}) < 2:
        return None
    figure, ((left, right),) = grid(1, 2, 5.2, 3.7)
    handles, many = [], sorted({heads or 0 for _, heads in names})
    for i, arm in enumerate(ARMS):
        for variant, heads in enumerate(many):
            mine = {width: name for (width, h), name in names.items() if (h or 0) == heads}
            style = Style(looks()[arm].colour, looks()[arm].marker, variant)
            label = arm if len(many) == 1 else f"{arm}, {heads} heads"
            nudge = 1 + 0.035 * (i - 1)
            every = {w: [len(of(runs, name, arm, fitted=f)) for f in (True, False)] for w, name in mine.items()}
            shares = {width: k / n for width, (k, n) in every.items() if n}
            errors = np.abs(np.array([clopper_pearson(*every[width]) for width in shares]).T - list(shares.values()))
            x = [width * nudge for width in shares]
            left.errorbar(x, list(shares.values()), yerr=errors, elinewidth=0.9, capsize=2.5, **marked(style))
            beyond = {width: [run.beyond for run in of(runs, name, arm)] for width, name in mine.items()}
            beyond = {width: values for width, values in beyond.items() if values}
            handles.append(points(right, style, [width * nudge for width in beyond], list(beyond.values()), label))
    top = {width: known_beyond(runs, name) for (width, _), name in names.items()}
    colour, dash = REFERENCES["ceiling"]
    right.plot(list(top), list(top.values()), color=colour, ls=dash, lw=1.1, zorder=1)
    handles.append(Line2D([], [], color=colour, ls=dash, lw=1.1, label="ceiling"))
    left.set(title="share of seeds that fit in range", ylim=(-0.05, 1.08), ylabel="share, exact interval")
    right.set(title="first pasted token summed beyond, given fit", ylabel="delays")
    for ax in (left, right):
        counts(ax, sorted({width for width, _ in names}), "width")
        ax.grid(axis="y", color="#e4e4e4", lw=0.6)
    figure.legend(handles=handles, loc="outside lower center", ncol=3, frameon=False, fontsize=8.5)
    return headed(figure, "Model size", [run for run in runs if run.panel in names.values()])


def known_beyond(runs: list[StreamRun], panel: str) -> float:
    """What could be known of the first pasted tokens, summed over the delays beyond the trained ones."""
    run = next(run for run in runs if run.panel == panel)
    return sum(row["ceiling"] for d, row in run.points.items() if d > run.trained[1])
