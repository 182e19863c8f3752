"""Length × distance heat maps."""

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
            outline(ax, rows, values)
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
            paint(ax, strip, fitted)
            outline(ax, rows, strip, axis)
            ax.set_yticks([0], [for_figure(arm if fitted else f"{arm}\n(did not fit)")])
            ax.set_xticks(range(len(columns)), [f"{v:g}" for v in columns] if arm == arms[-1] else [])
            ax.set_xlabel(f"{axis} (framed: trained), {label(metric)}" if arm == arms[-1] else "")
            for i, value in enumerate(strip.iloc[0] if len(strip) else []):
                ink = "white" if value < 0.6 or not fitted else "#222222"
                if not math.isnan(value):
                    ax.text(
                        i,
                        0,
                        f"{value:.2f}".removeprefix("0"),
                        ha="center",
                        va="center",
                        fontsize=7.5,
                        color=ink if fitted else "#333333",
                    )
    return figure


def pivot(rows, index: str, columns: str, metric: str):
    """Return means over the seeds that fit; over all of them where none did."""
    fitted = rows[rows["fit"]]
    return (fitted if len(fitted) else rows).pivot_table(index=index, columns=columns, values=metric)


def paint(ax, values, fitted: bool):
    """Colours for an arm that fits, greys for one that does not; what wasn't measured is hatched."""
    ax.set_facecolor("#f4f4f4")
    ax.patch.set(hatch="////", edgecolor="#d0d0d0")
    colours = (
        matplotlib.colormaps["viridis"]
        if fitted
        else matplotlib.colors.LinearSegmentedColormap.from_list("g", ["#bdbdbd", "#f0f0f0"])
    )
    image = ax.imshow(
        np.ma.masked_invalid(values.to_numpy(float)), origin="lower", aspect="auto", vmin=0, vmax=1, cmap=colours
    )
    ticks(ax.xaxis, values.columns)
    if values.index.name == "distance":
        ticks(ax.yaxis, values.index)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return image


def ticks(axis, values) -> None:
    step = max(1, -(-len(values) // 9))
    axis.set_ticks(range(0, len(values), step), [f"{v:g}" for v in values[::step]], fontsize=8)


def outline(ax, panel: Panel, values, axis: str | None = None) -> None:
    """Draw a frame around the trained cells. axis: the only one that varies."""
    spans = []
    for name, along_axis in (("length", values.columns), ("distance", values.index)):
        if axis is not None and name == "distance":
            spans.append((-0.5, 0.5))
            continue
        coordinates = list(values.columns if axis else along_axis)
        inside = [
            i for i, v in enumerate(coordinates) if any(a <= v <= b for a, b in panel.trained_ranges(axis or name))
        ]
        if not inside:
            return
        spans.append((inside[0] - 0.5, inside[-1] + 0.5))
    (x0, x1), (y0, y1) = spans
    ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, ec="#d4542a", lw=1.8, clip_on=False, zorder=5))
