"""The curves, with the trained range shaded."""

import math
from pathlib import Path

import matplotlib
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..plotting import LOOK, grid, legend, level, log_lengths, reference_lines, save, shade
from ..results.aggregate import FEWEST, over_seeds
from ..results.columns import SCORES
from ..results.panel import Panel
from .captions import facts
from .escape import for_figure
from .style import GREY, Style, styles


def curve(ax, panel: Panel, axis: str, metric: str) -> list[Artist]:
    """Draw a score along an axis; return the handles of the legend."""
    seeds = panel.by_seed(axis, metric)
    shade(ax, panel.trained_ranges(axis))
    handles = seed_lines(ax, panel, seeds, axis, metric)
    ax.set(xlabel=f"{axis} (tokens)")
    level(ax, metric)
    if axis == "length":
        log_lengths(ax, seeds[axis])
    return handles + reference_lines(ax, panel.references(axis, metric))


def seed_lines(ax, panel: Panel, seeds, axis: str, metric: str) -> list[Artist]:
    """Draw one arm after the other, from the columns `axis` and `metric` of `seeds` (arm, fit, seed); return the handles.

    From three fitting seeds on: their mean and its t interval. Below that every seed is a thin line of its own. Seeds that
    did not fit are thin and grey, and enter no mean."""
    look, handles = styles(panel.arms), []
    arms = [arm for arm in panel.arms if (seeds["arm"] == arm).any()]
    for under, arm in enumerate(reversed(arms)):
        rows, (fitted, all_seeds) = seeds[seeds["arm"] == arm], panel.fits[arm]
        for _, run in rows[~rows["fit"]].groupby("seed"):
            draw(ax, run[axis], run[metric], look[arm], fitted=False)
        good = rows[rows["fit"]]
        if fitted >= FEWEST:
            band(ax, good, axis, metric, look[arm], under)
        else:
            for _, run in good.groupby("seed"):
                draw(ax, run[axis], run[metric], look[arm], under=under)
        handles.insert(0, handle(arm, look[arm], fitted, all_seeds))
    if any(panel.fits[arm][0] >= FEWEST for arm in arms):
        handles.append(Patch(color="#888888", alpha=0.17, label="band: 95 % t interval over seeds"))
    return handles


def draw(ax, x, y, style: Style, fitted: bool = True, under: int = 0) -> None:
    colour = style.colour if fitted else GREY
    ax.plot(
        x,
        y,
        color=colour,
        ls=style.dash if fitted else (0, (1, 1.6)),
        lw=1.6 if fitted else 0.9,
        marker=style.marker,
        ms=4.8 if fitted else 3.6,
        mfc=colour if style.variant == 0 else "white",
        mec=colour if style.variant else "white",
        mew=0.9 if style.variant else 0.4,
        alpha=0.95 if fitted else 0.7,
        zorder=3 - 0.1 * under if fitted else 2,
    )


def band(ax, good, axis: str, metric: str, style: Style, under: int) -> None:
    """Draw the mean over seeds, and its interval where there are three."""
    x, means = [], []
    for point, values in good.groupby(axis)[metric]:
        x.append(point)
        means.append(over_seeds(values, SCORES[metric].bounds))
    draw(ax, x, [mean.mean for mean in means], style, under=under)
    low = [math.nan if mean.low is None else mean.low for mean in means]
    high = [math.nan if mean.high is None else mean.high for mean in means]
    ax.fill_between(x, low, high, color=style.colour, alpha=0.17, lw=0, zorder=1.5)


def handle(arm: str, style: Style, fitted: int, seeds: int) -> Line2D:
    note = " (did not fit)" if fitted == 0 else f" ({fitted} of {seeds} seeds fit)" if fitted < seeds else ""
    colour = style.colour if fitted else GREY
    return Line2D(
        [],
        [],
        color=colour,
        ls=style.dash if fitted else (0, (1, 1.6)),
        marker=style.marker,
        ms=5,
        mfc=colour if style.variant == 0 else "white",
        label=for_figure(arm + note),
    )


def curves(panel: Panel, out: Path) -> list[Path]:
    """One figure per axis, one axes per metric."""
    paths = []
    for axis in panel.axes:
        shown = panel.metrics
        with matplotlib.rc_context(LOOK):
            figure, row = grid(1, len(shown), 5.4 if len(shown) > 1 else 6.8, 4.3)
            handles = [h for ax, metric in zip(row[0], shown, strict=True) for h in curve(ax, panel, axis, metric)]
            legend(figure, handles, 4)
            figure.suptitle(f"{for_figure(panel.title)}: unseen {axis}\n{facts(panel)}", fontsize=10, ha="left", x=0.02)
            paths.append(save(figure, out / f"{panel.slug}_{axis}"))
    return paths


def overview(shown: list[Panel], out: Path) -> Path | None:
    """Each panel once, by its first metric and the axis that it is about: the picture for a README."""
    drawn = [panel for panel in shown if panel.axes]
    if not drawn:
        return None
    columns = min(2, len(drawn))
    with matplotlib.rc_context(LOOK):
        figure, all_axes = grid(-(-len(drawn) // columns), columns, 5.7 if columns > 1 else 6.8, 4.5)
        lines = 0
        for ax, panel in zip(all_axes.flat, drawn, strict=False):
            axis = panel.axes[-1]
            handles = curve(ax, panel, axis, panel.metrics[0])
            columns_of_it = 4 if max(len(handle.get_label()) for handle in handles) < 20 else 3
            legend(ax, handles, columns_of_it)
            lines = max(lines, -(-(len(handles) + 1) // columns_of_it))
            ax.set_title(f"{for_figure(panel.title)}: unseen {axis}", fontweight="bold", pad=30)
            ax.annotate(
                facts(panel),
                (0, 1),
                xycoords="axes fraction",
                xytext=(0, 17),
                textcoords="offset points",
                fontsize=8,
                color="#666666",
            )
        for ax in all_axes.flat[len(drawn) :]:
            ax.set_visible(False)
        figure.set_figheight((3.9 + 0.21 * lines) * len(all_axes))
        return save(figure, out / "overview")
