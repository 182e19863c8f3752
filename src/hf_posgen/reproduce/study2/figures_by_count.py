"""Study 2's figures against a count: claim B by the number of trained delays, and size by the model's width."""

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from ...plotting import GRID, REFERENCES, grid
from ...report.captions import facts
from ...report.style import Style, styles
from ...results.frame import frame
from ...results.panel import Panel
from ...results.statistics import clopper_pearson, t_interval
from ..verdicts import runs_of
from .contrasts import fit_count
from .scaling import by_range, widths
from .streams import ARMS, TOKENS, StreamRun

NULLS = {  # of P: field of its numbers, name, dash
    "overshoot": ("a model that overshoots by 5 whatever it saw", (0, (4, 3))),
    "ngram": ("2-gram baseline, blind to the delay", (0, (3, 1.2, 1, 1.2))),
}
NULL_LINE = {"color": "#777777", "lw": 1.1}
TICKS = (0, 0.5, 1, 2, 5, 10, 20, 50, 100)


def headline(figure, title: str, runs: list[StreamRun]):
    """Write the title and what must stand on every figure; return the figure. One arm of two panels is two arms here."""
    rows = [row | {"arm": f"{run.panel} {run.arm}"} for run in runs for row in run.rows]
    figure.suptitle(f"{title}\n{facts(Panel(frame(rows)))}", fontsize=10, ha="left", x=0.02)
    return figure


def arm_styles() -> dict[str, Style]:
    """Return {arm: its style in the reports}."""
    return styles({arm: arm for arm in ARMS})


def diversity(runs: list[StreamRun]):
    """Draw claim B: what is won beyond the trained delays, and P with its nulls, against how many delays were trained;
    None with fewer than two ranges."""
    panels = by_range(runs)
    if len(panels) < 2:
        return None
    figure, ((left, right),) = grid(1, 2, 5.2, 3.9)
    handles, hollow = [], False
    for arm in ARMS:
        fitted = {count: runs_of(runs, panel, arm) for count, panel in panels.items()}
        fitted = {count: arm_runs for count, arm_runs in fitted.items() if arm_runs}
        if not fitted:
            continue
        won = {count: [run.far().won for run in arm_runs] for count, arm_runs in fitted.items()}
        handles.append(interval_line(left, arm_styles()[arm], won, arm))
        hollow |= ratio_lines(right, arm_styles()[arm], fitted)
    handles += [proportional(left, list(panels)), *null_lines(right, runs, panels)]
    left.set(title="first pasted token: delays won beyond, W", ylabel="delays")
    right.set(title="all pasted tokens: P" + (" (hollow: not valid)" if hollow else ""), ylabel="beyond / within")
    for ax in (left, right):
        count_axis(ax, list(panels), "trained delays")
        from_zero(ax)
    figure.legend(handles=handles, loc="outside lower center", ncol=2, frameon=False, fontsize=8.5)
    return headline(figure, "More trained delays, full copies", [run for run in runs if run.panel in panels.values()])


def ratio_lines(ax, style: Style, fitted: dict[int, list[StreamRun]]) -> bool:
    """Draw an arm's P by count, hollow and unjoined where it isn't valid; return whether some isn't."""
    ratios = {True: {}, False: {}}
    for count, runs in fitted.items():
        numbers = [run.far(TOKENS) for run in runs]
        ratios[not numbers[0].invalid][count] = [one.ratio for one in numbers]
    interval_line(ax, style, ratios[True])
    interval_line(ax, style, ratios[False], mfc="white", ls="none")
    return bool(ratios[False])


def null_lines(ax, runs: list[StreamRun], panels: dict[int, str]) -> list[Line2D]:
    """Draw the nulls of P, which hang on the trained delays alone; return their handles."""
    handles = []
    numbers = [next(run.far(TOKENS) for run in runs if run.panel == panel) for panel in panels.values()]
    for field, (label, dash) in NULLS.items():
        ax.plot(list(panels), [getattr(one, field) for one in numbers], ls=dash, zorder=1, **NULL_LINE)
        handles.append(Line2D([], [], ls=dash, label=label, **NULL_LINE))
    return handles


def proportional(ax, counts: list[int]) -> Line2D:
    """Draw what grows in proportion to the count, through the middle of what is drawn; return its handle."""
    line = {"color": "#bbbbbb", "lw": 1.1, "ls": (0, (1, 1.5))}
    top = max((float(np.max(drawn.get_ydata())) for drawn in ax.lines if len(drawn.get_ydata())), default=1.0)
    x = np.geomspace(min(counts), max(counts), 50)
    ax.plot(x, top / max(counts) * x, zorder=1, **line)
    return Line2D([], [], label="for comparison: W in proportion to the trained delays", **line)


def interval_line(ax, style: Style, groups: dict[float, list[float]], label: str | None = None, **changes) -> Line2D:
    """Draw means over seeds with Student's intervals against the keys of `groups`, joined; from fewer than three seeds the
    means alone. Return a handle for the legend."""
    line = marked(style) | {"lw": 1.8} | changes
    if groups:
        means = [float(np.mean(values)) for values in groups.values()]
        ends = [t_interval(values) or (mean, mean) for values, mean in zip(groups.values(), means, strict=True)]
        errors = np.abs(np.array(ends).T - np.array(means))
        ax.errorbar(list(groups), means, yerr=errors, elinewidth=1.0, capsize=2.5, **line)
    return Line2D([], [], label=label, **line)


def marked(style: Style) -> dict:
    """Return an arm's colour, marker and line; a second arm of one encoding is hollow and dashed."""
    fill = "white" if style.variant else style.colour
    return {"color": style.colour, "marker": style.marker, "ls": style.dash, "ms": 6, "lw": 1.5, "mfc": fill}


def count_axis(ax, values: list[int], label: str) -> None:
    """Make the axis along logarithmic with a tick at each of some counts."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(values))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(values, [str(value) for value in values])
    ax.set_xlabel(label)


def from_zero(ax) -> None:
    """Make the upright axis logarithmic above .5 and linear below, so that intervals which reach 0 are drawn whole."""
    low, high = ax.dataLim.intervaly
    ax.set_yscale("symlog", linthresh=0.5)
    ax.yaxis.set_major_locator(FixedLocator(TICKS))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylim(min(low, 0) - 0.05, high * 1.15)
    ax.grid(**GRID)


def size(runs: list[StreamRun]):
    """Draw the shares that fit, and how far the fitted ones hold, against the width; None with fewer than two widths."""
    panels = widths(runs)
    if len({width for width, _ in panels}) < 2:
        return None
    figure, ((left, right),) = grid(1, 2, 5.2, 3.7)
    handles, head_counts = [], sorted({heads or 0 for _, heads in panels})
    for i, arm in enumerate(ARMS):
        for variant, heads in enumerate(head_counts):
            style = Style(arm_styles()[arm].colour, arm_styles()[arm].marker, variant)
            nudge = 1 + 0.035 * (i - 1)  # so that arms with equal shares are all seen
            by_width = {width: panel for (width, h), panel in panels.items() if (h or 0) == heads}
            fit_shares(left, style, {w * nudge: fit_count(runs, panel, arm) for w, panel in by_width.items()})
            beyond = {w * nudge: [run.beyond for run in runs_of(runs, panel, arm)] for w, panel in by_width.items()}
            label = arm if len(head_counts) == 1 else f"{arm}, {heads} heads"
            handles.append(interval_line(right, style, {w: values for w, values in beyond.items() if values}, label))
    ceilings = {width: ceiling_beyond(runs, panel) for (width, _), panel in panels.items()}
    colour, dash = REFERENCES["ceiling"]
    right.plot(list(ceilings), list(ceilings.values()), color=colour, ls=dash, lw=1.1, zorder=1)
    handles.append(Line2D([], [], color=colour, ls=dash, lw=1.1, label="ceiling"))
    left.set(title="share of seeds that fit in range", ylim=(-0.05, 1.08), ylabel="share, exact interval")
    right.set(title="first pasted token summed beyond, given fit", ylabel="delays")
    for ax in (left, right):
        count_axis(ax, sorted({width for width, _ in panels}), "width")
        ax.grid(axis="y", **GRID)
    figure.legend(handles=handles, loc="outside lower center", ncol=3, frameon=False, fontsize=8.5)
    return headline(figure, "Model size", [run for run in runs if run.panel in panels.values()])


def fit_shares(ax, style: Style, counts: dict[float, tuple[int, int]]) -> None:
    """Draw shares that fit with their exact intervals against the keys of `counts`."""
    counts = {x: (fit, count) for x, (fit, count) in counts.items() if count}
    if not counts:
        return
    shares = np.array([fit / count for fit, count in counts.values()])
    errors = np.abs(np.array([clopper_pearson(*pair) for pair in counts.values()]).T - shares)
    ax.errorbar(list(counts), shares, yerr=errors, elinewidth=0.9, capsize=2.5, **marked(style))


def ceiling_beyond(runs: list[StreamRun], panel: str) -> float:
    """Return what could be known of the first pasted tokens, summed over the delays beyond the trained ones."""
    run = next(run for run in runs if run.panel == panel)
    return sum(row["ceiling"] for d, row in run.points.items() if d > run.trained[1])
