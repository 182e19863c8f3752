"""Seen and unseen, both axes at once: where one model holds, and where the studies seem to disagree."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from ..plotting import LOOK, save
from ..results.aggregate import SeedMean, over_seeds
from ..results.columns import SCORES, label
from ..results.panel import Panel
from ..results.shared import shared_cells
from .captions import facts
from .curves import curve
from .escape import for_figure
from .maps import pivot
from .tables import shown_runs

SHOWN = ("test", "longer", "farther", "both")  # nearer distances are unseen too, but no extrapolation
CHARACTERS = 13  # of a note, to an inch of the figure
GAP = 0.045  # between what was seen and what was not, of an axis


def two_by_two(panel: Panel, out: Path) -> list[Path]:
    """Draw length × distance for every arm of a panel that was evaluated on all four combinations of seen and unseen, with
    the mean of each written on it: over the cells that all arms have, then over seeds.

    Where the same report holds a study of one fixed distance, whose lengths alone are unseen, it is drawn beside."""
    nearest, beside = panel.trained_range("distance")[0], one_fixed_distance(panel.siblings)
    shown = panel.select(panel.table["split"].isin(SHOWN) & ~(panel.table["distance"] < nearest))
    if shown.table.empty or shown.table["distance"].isna().all():
        return []
    metric = shown.metrics[0]
    shared = shared_cells(shown_runs(shown).dropna(subset=[metric]))
    if set(shared.rows["split"]) < set(SHOWN):
        return []
    shown = replace(shown, table=shared.rows)
    arms = list(shown.arms)
    columns = min(3, len(arms))
    rows = -(-len(arms) // columns)
    with matplotlib.rc_context(LOOK):
        widths = [2.4] * columns + [3.5] * bool(beside)
        figure = Figure(figsize=(sum(widths) + 0.8, 3.4 * rows + 0.6), layout="constrained")
        grid, image = figure.add_gridspec(rows, len(widths), width_ratios=widths), None
        for i, arm in enumerate(arms):
            ax = figure.add_subplot(grid[i // columns, i % columns])
            image = block(ax, shown.arm(arm), metric, leftmost=i % columns == 0) or image
            fitted = shown.fits[arm][0] > 0
            ax.set_title(for_figure(arm if fitted else f"{arm} (did not fit)"), fontweight="bold", color="#222222")
        if image:
            figure.colorbar(image, ax=figure.axes, label=f"accuracy, {label(metric)}", fraction=0.03, pad=0.01)
        if beside:
            side(figure.add_subplot(grid[:, columns]), beside, [*arms, "learned"])
        words = (
            "Means over the cells shown; below them the 95 % t interval over seeds, with two seeds each one. "
            f"{shared.sentence}"
        )
        note = textwrap.fill(words, int(CHARACTERS * figure.get_figwidth()))
        figure.set_figheight(figure.get_figheight() + 0.16 * (note.count("\n") + 1))
        figure.suptitle(
            f"{for_figure(panel.title)}: unseen length × unseen distance\n{facts(shown)}\n{for_figure(note)}",
            fontsize=10,
            ha="left",
            x=0.02,
        )
        return [save(figure, out / f"{panel.slug}_two_by_two")]


def block(ax, arm: Panel, metric: str, leftmost: bool):
    """Draw one arm's cells, what was trained apart from what was not; return what a colour bar can be made of.

    An arm that did not fit is drawn in greys, and returns None."""
    fitted = bool(arm.table["fit"].any())
    if fitted:
        arm = arm.select(arm.table["fit"])
    values = pivot(arm.table, "distance", "length", metric)
    x, seen_x = places(values.columns, arm.trained_range("length"))
    y, seen_y = places(values.index, arm.trained_range("distance"))
    colours = "viridis" if fitted else "Greys"
    for on_x in (True, False):
        for on_y in (True, False):
            part = values.to_numpy(float)[np.ix_(seen_y == on_y, seen_x == on_x)]
            if part.size:
                edges = [np.append(at, at[-1] + 1) for at in (x[seen_x == on_x], y[seen_y == on_y])]
                image = ax.pcolormesh(*edges, np.ma.masked_invalid(part), vmin=0, vmax=1, cmap=colours, lw=0)
                inside = arm.table["length"].isin(values.columns[seen_x == on_x])
                inside &= arm.table["distance"].isin(values.index[seen_y == on_y])
                by_seed = arm.table[inside].groupby("seed")[metric].mean().dropna()
                if mean := over_seeds(by_seed, SCORES[metric].bounds):
                    write_mean(ax, mean, [(at[0] + at[-1]) / 2 for at in edges])
    ax.set_xticks(x + 0.5, [f"{v:g}" for v in values.columns], fontsize=8)
    every = max(1, math.ceil(len(y) / 14))
    ax.set_yticks(y[::every] + 0.5, [f"{v:g}" for v in values.index[::every]], fontsize=8)
    ax.set_xlabel("length (tokens)", labelpad=20)
    if leftmost:
        ax.set_ylabel("distance (tokens)", labelpad=20)
    for along, at, seen in (("x", x, seen_x), ("y", y, seen_y))[: 1 + leftmost]:
        for word, cells in (("seen", at[seen]), ("unseen", at[~seen])):
            if len(cells):
                say_seen(ax, along, (cells[0] + cells[-1] + 1) / 2, word)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image if fitted else None


def write_mean(ax, mean: SeedMean, at: list[float]) -> None:
    """Write a mean at a place; below it its interval over seeds, with two seeds each one."""
    style = {"ha": "center", "color": "white", "textcoords": "offset points"}
    style["path_effects"] = [withStroke(linewidth=2.4, foreground="#222222")]
    ax.annotate(_short(mean.mean), at, (0, 0), va="center", fontsize=13, fontweight="bold", **style)
    if mean.low is not None:
        under = f"[{_short(mean.low)}, {_short(mean.high)}]"
    else:
        under = ", ".join(map(_short, mean.values)) if mean.n > 1 else ""
    if under:
        ax.annotate(under, at, (0, -9), va="top", fontsize=8, **style)


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def say_seen(ax, along: str, at: float, word: str) -> None:
    """Under or beside the numbers of some cells: whether training saw them."""
    colour = "#8c6d1f" if word == "seen" else "#333333"
    style = {"fontsize": 8, "color": colour, "fontstyle": "italic", "textcoords": "offset points", "ha": "center"}
    if along == "x":
        ax.annotate(word, (at, 0), (0, -24), xycoords=("data", "axes fraction"), va="center", **style)
    else:
        ax.annotate(word, (0, at), (-27, 0), xycoords=("axes fraction", "data"), va="center", rotation=90, **style)


def places(values, trained: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """(where each cell begins, whether it was trained): cells of width 1, a gap between seen and unseen."""
    seen = np.array([trained[0] <= v <= trained[1] for v in values])
    return np.arange(len(seen)) + GAP * len(seen) * np.cumsum(np.append(0, seen[1:] != seen[:-1])), seen


def side(ax, panel: Panel, arms: list[str]) -> None:
    """Draw accuracy against length at one fixed distance, of some arms as far as they fit, of all that fit where none of
    them does."""
    fitted = [arm for arm, (fit, _) in panel.fits.items() if fit]
    fitted = [arm for arm in fitted if arm in arms] or fitted
    handles = curve(ax, panel.select(panel.table["arm"].isin(fitted)), "length", panel.metrics[0])
    ax.set_title(f"{for_figure(panel.title)}: length alone", fontweight="bold", pad=16)
    ax.legend(handles=handles, ncol=2, frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2))


def one_fixed_distance(panels: Sequence[Panel]) -> Panel | None:
    """Return the panel with most arms of those whose length alone is unseen, the first of several."""
    alone = [panel for panel in panels if panel.axes == ["length"]]
    return max(alone, key=lambda panel: len(panel.arms), default=None)
