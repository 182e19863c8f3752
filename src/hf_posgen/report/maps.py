"""Length × distance heat maps, whose cells are as far apart as the lengths and distances they stand for."""

import math
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..plotting import LOOK, grid, save
from ..results.columns import label
from ..results.panel import Panel
from .captions import facts
from .escape import for_figure

MOST_TICKS = 9
BREAK = 0.5  # of a cell's width: the gap in a strip where values in between were not evaluated


def heat_maps(panel: Panel, out: Path) -> list[Path]:
    """Length × distance, one map per arm and metric; one strip per arm where a panel has one distance only."""
    tested = panel.select(panel.table["split"] != "validation")
    table = tested.table
    lengths, distances = table["length"].nunique(), table["distance"].nunique()
    if max(lengths, distances) < 2 or distances == 0:
        return []
    with matplotlib.rc_context(LOOK):
        draw = _maps if min(lengths, distances) > 1 else _strips
        figure = draw(tested)
        figure.suptitle(
            f"{for_figure(panel.title)}, mean over the seeds that fit\n{facts(panel)}", fontsize=10, ha="left", x=0.02
        )
        return [save(figure, out / f"{panel.slug}_heat")]


def _maps(panel: Panel) -> Figure:
    arms, shown, fits = list(panel.arms), panel.metrics, panel.fits
    columns = min(6, len(arms))
    lines = [(metric, arms[i : i + columns]) for metric in shown for i in range(0, len(arms), columns)]
    figure, all_axes = grid(len(lines), columns, 2.5, 3.2)
    for row, (metric, some) in zip(all_axes, lines, strict=True):
        image = None
        for ax, arm in zip(row, some, strict=False):
            rows, fitted = panel.arm(arm), fits[arm][0] > 0
            values = pivot(rows.table, "distance", "length", metric)
            painted = paint(ax, values, fitted)
            image = painted if fitted else image
            spans = []
            for axis, along in (("length", values.columns), ("distance", values.index)):
                ends = edges(places(along))
                spans.append(trained_span(rows, axis, along, ends[:-1], ends[1:]))
            outline(ax, spans)
            ax.set(title=for_figure(arm if fitted else f"{arm} (did not fit)"), xlabel="length")
        for ax in row[len(some) :]:
            ax.set_visible(False)
        row[0].set_ylabel(f"{label(metric)}\ndistance")
        if image:
            figure.colorbar(image, ax=list(row), label="accuracy", fraction=0.04, shrink=0.85)
    return figure


def _strips(panel: Panel) -> Figure:
    arms, shown, table = list(panel.arms), panel.metrics, panel.table
    axis = "length" if table["length"].nunique() > 1 else "distance"
    columns = sorted(table[axis].dropna().unique())
    figure, all_axes = grid(len(arms), len(shown), max(6.5, 0.42 * len(columns)), 0.62)
    figure.set_figheight(0.55 * len(arms) + 1.5)
    for line, arm in zip(all_axes, arms, strict=True):
        for ax, metric in zip(line, shown, strict=True):
            rows, fitted = panel.arm(arm), panel.fits[arm][0] > 0
            strip = pivot(rows.table, "arm", axis, metric).reindex(columns=columns)
            at = paint_strip(ax, strip, fitted)
            outline(ax, [trained_span(rows, axis, columns, at - 0.5, at + 0.5), (-0.5, 0.5)])
            last = arm == arms[-1]
            ax.set_yticks([0], [for_figure(arm if fitted else f"{arm}\n(did not fit)")])
            ax.set_xticks(at, [f"{v:g}" for v in columns] if last else [""] * len(at))
            ax.set_xlabel(f"{axis} (framed: trained; gaps: larger steps), {label(metric)}" if last else "")
    return figure


def pivot(rows, index: str, columns: str, metric: str):
    """Return means over the seeds that fit; over all of them where none did."""
    fitted = rows[rows["fit"]]
    return (fitted if len(fitted) else rows).pivot_table(index=index, columns=columns, values=metric)


def places(values) -> np.ndarray:
    """Return where values lie along an axis: as they are where their steps are even, else by the logarithm of 1 + value."""
    values = np.asarray(values, float)
    steps = np.diff(values)
    return values if np.allclose(steps, steps[:1]) else np.log2(1 + values)


def edges(at: np.ndarray) -> np.ndarray:
    """Return the n + 1 edges of n cells: midway between neighbours, and as far beyond the first and the last."""
    if len(at) == 1:
        return np.array([at[0] - 0.5, at[0] + 0.5])
    middles = (at[1:] + at[:-1]) / 2
    return np.concatenate([[2 * at[0] - middles[0]], middles, [2 * at[-1] - middles[-1]]])


def broken_places(values) -> np.ndarray:
    """Return places one apart, with a gap wherever the step is larger than the smallest one."""
    steps = np.diff(np.asarray(values, float))
    jumps = steps > steps.min() * 1.001 if len(steps) else steps
    return np.concatenate([[0.0], np.cumsum(1 + BREAK * jumps)])


def paint(ax, values, fitted: bool):
    """Colours for an arm that fits, greys for one that does not; what wasn't measured is hatched."""
    ax.set_facecolor("#f4f4f4")
    ax.patch.set(hatch="////", edgecolor="#d0d0d0")
    x, y = places(values.columns), places(values.index)
    shown, look = np.ma.masked_invalid(values.to_numpy(float)), {"edgecolors": "white", "lw": 0.2}
    image = ax.pcolormesh(edges(x), edges(y), shown, vmin=0, vmax=1, cmap=colours(fitted), **look)
    ticks(ax.xaxis, x, values.columns)
    ticks(ax.yaxis, y, values.index)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.tick_params(which="minor", length=2, color="#888888")
    return image


def paint_strip(ax, strip, fitted: bool) -> np.ndarray:
    """Paint the one row of `strip` cell by cell, and write on each its number; return where the cells are."""
    at = broken_places(strip.columns)
    ax.set(xlim=(at[0] - 0.5, at[-1] + 0.5), ylim=(-0.5, 0.5))
    for x, value in zip(at, strip.iloc[0] if len(strip) else [math.nan] * len(at), strict=True):
        known = not math.isnan(value)
        look = {"fc": colours(fitted)(value), "lw": 0} if known else {"fc": "#f4f4f4", "ec": "#d0d0d0", "hatch": "////"}
        ax.add_patch(Rectangle((x - 0.5, -0.5), 1, 1, **(look if known else look | {"lw": 0})))
        if known:
            ink = "#333333" if not fitted else "white" if value < 0.6 else "#222222"
            text = f"{value:.2f}".removeprefix("0")
            ax.text(x, 0, text, ha="center", va="center", fontsize=7.5, color=ink)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return at


def colours(fitted: bool):
    """Return the colours of an arm that fits, or the greys of one that does not."""
    if fitted:
        return matplotlib.colormaps["viridis"]
    return matplotlib.colors.LinearSegmentedColormap.from_list("g", ["#bdbdbd", "#f0f0f0"])


def ticks(axis, at: np.ndarray, values) -> None:
    """Mark every value, and name as many as there is room for, the largest among them."""
    room, named = (at[-1] - at[0]) / MOST_TICKS, [len(at) - 1]
    for i in range(len(at) - 2, -1, -1):
        if at[named[-1]] - at[i] >= room:
            named.append(i)
    axis.set_ticks(at, minor=True)
    axis.set_ticks(at[named[::-1]], [f"{values[i]:g}" for i in named[::-1]], fontsize=8)


def outline(ax, spans: list[tuple[float, float] | None]) -> None:
    """Draw a frame around the trained cells, from their ends on both axes; none where an axis has no trained cell."""
    if None in spans:
        return
    (x0, x1), (y0, y1) = spans
    ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, ec="#d4542a", lw=1.8, clip_on=False, zorder=5))


def trained_span(panel: Panel, axis: str, values, left: np.ndarray, right: np.ndarray) -> tuple[float, float] | None:
    """Return from the left edge of the first trained cell to the right edge of the last; None without any."""
    inside = [i for i, v in enumerate(values) if any(a <= v <= b for a, b in panel.trained_ranges(axis))]
    return (float(left[inside[0]]), float(right[inside[-1]])) if inside else None
