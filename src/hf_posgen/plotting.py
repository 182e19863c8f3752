"""What all figures share: their look, axes, shades, reference lines and legends."""

import math
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, LogFormatter, NullLocator

from .results.columns import is_share, label

LOOK = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": "#333333",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # of lines that are no arms
SHADE = "#f3ead0"
GRID = {"color": "#e4e4e4", "lw": 0.6}
REFERENCES = {
    "chance": ("#555555", (0, (4, 3))),
    "ceiling": ("#555555", (0, (7, 2, 1, 2))),
    "bag of words": ("#8c6d1f", (0, (1, 1.5))),
    "1-gram baseline": ("#8c6d1f", (0, (6, 2))),
    "2-gram baseline": ("#8c6d1f", (0, (3, 1.2, 1, 1.2))),
    "1-gram baseline, rest": ("#8c6d1f", (0, (6, 2))),
    "2-gram baseline, rest": ("#8c6d1f", (0, (3, 1.2, 1, 1.2))),
    "token frequencies": ("#8c6d1f", (0, (1, 1.5))),
}


def look():
    """Return a context in which figures are drawn and saved in the common look."""
    return matplotlib.rc_context(LOOK)


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG and a PDF side by side; return the PNG's path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    figure.savefig(path.with_suffix(".png"), dpi=170)
    figure.set_layout_engine("none")  # it is laid out; doing so again takes as long as drawing
    figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
    return path.with_suffix(".png")


def grid(rows: int, columns: int, width: float, height: float):
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def side_by_side(count: int, width: float = 4.6, height: float = 3.6, columns: int | None = None):
    """Return a figure and a list of `count` axes in rows of `columns`, each `width` x `height` inches, with grid lines."""
    columns = min(count, columns or count)
    figure, all_axes = grid(-(-count // columns), columns, width, height)
    for ax in all_axes.flat[:count]:
        ax.grid(**GRID)
        ax.set_axisbelow(True)
    for ax in all_axes.flat[count:]:
        ax.remove()
    return figure, list(all_axes.flat[:count])


def level(ax, metric: str) -> None:
    """The upright axis: a share from 0 to 1, or a perplexity, whose ratios count."""
    if is_share(metric):
        ax.set(ylim=(-0.03, 1.05), ylabel=f"accuracy, {label(metric)}")
    else:
        ax.set(ylabel=label(metric), yscale="log")
        for axis in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
            axis(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.5)))
    ax.grid(axis="y", **GRID)
    ax.set_axisbelow(True)


def shade(ax, ranges: list[tuple[float, float]]) -> None:
    """The trained range: a band, or a line where it is one point. Where arms differ, the bands overlap."""
    for low, high in ranges:
        ax.axvspan(low, high, color=SHADE, alpha=1.0 if len(ranges) == 1 else 0.5, lw=0 if high > low else 3, zorder=0)
    if ranges:
        low, high = ranges[0][0], max(high for _, high in ranges)
        middle = math.sqrt(low * high) if ax.get_xscale() == "log" else (low + high) / 2
        ax.annotate(
            "trained",
            (middle, 1.0),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=8,
            color="#8c6d1f",
        )


def log_lengths(ax, lengths) -> None:
    ax.set_xscale("log", base=2)
    low, high = math.floor(math.log2(max(1, lengths.min()))), math.ceil(math.log2(max(2, lengths.max())))
    ticks = [2**i for i in range(low, high + 1)]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(ticks, [str(tick) for tick in ticks])


def trained_lengths(ax, lengths, longest_trained: int) -> None:
    """Label a logarithmic axis of sequence lengths, and shade those up to the longest trained one."""
    log_lengths(ax, np.asarray(lengths))
    ax.axvspan(ax.get_xlim()[0], longest_trained, color=SHADE, lw=0, zorder=0, label="trained lengths")
    ax.set_xlabel("length (tokens)")


def trained_offsets(ax, train_length: int, offset: int | None = None) -> None:
    """Shade the trained offsets 0 to train_length - 1, and mark the one that the task asks for."""
    ax.axvspan(-0.5, train_length - 0.5, color=SHADE, lw=0, zorder=0, label="trained offsets")
    if offset is not None:
        ax.axvline(offset, color="#555555", lw=0.9, ls="--", zorder=1, label=f"the right key, k = {offset}")


def legend_below(ax, columns: int = 2, drop: float = 0.17) -> None:
    """Place the legend of one axes under it, where it hides no data. drop: by what share of the axes' height."""
    ax.legend(ncol=columns, frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -drop))


def reference_lines(ax, values: dict) -> list[Line2D]:
    out = []
    for name, line in values.items():
        colour, dash = REFERENCES[name]
        ax.plot(line.index, line, color=colour, lw=1.1, ls=dash, zorder=1.8)
        out.append(Line2D([], [], color=colour, lw=1.1, ls=dash, label=name))
    return out


def legend(where: Figure | Axes, handles: list[Line2D], columns: int) -> None:
    """One legend under a figure or under one axes; a name stands there once."""
    shown = [*{one.get_label(): one for one in handles}.values(), Patch(color=SHADE, label="trained range")]
    place = {"loc": "outside lower center"}
    if isinstance(where, Axes):
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14)}
    where.legend(handles=shown, ncol=columns, frameon=False, fontsize=8.5, **place)
