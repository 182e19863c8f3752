"""Perplexity by position: whether a model still uses, at a place it never saw in training, what stands before it."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from ..plotting import LOOK, grid, legend, level, log_lengths, save, shade
from ..results.panel import Panel
from .captions import facts
from .curves import seed_lines
from .escape import for_figure

PER_OCTAVE = 4


def by_position(table: pd.DataFrame) -> pd.DataFrame:
    """Return (arm, fit, seed, position) → perplexity in windows of the longest length; empty where no row has them.

    Beyond the trained length positions are taken together, `PER_OCTAVE` points to a doubling. A point stands at the mean
    position of its tokens."""
    if "positions" not in table:
        return pd.DataFrame()
    rows = table[
        (table["length"] == table["length"].max()) & table["positions"].map(lambda value: isinstance(value, list))
    ]
    points = pd.DataFrame(
        {"arm": row.arm, "fit": row.fit, "seed": row.seed, "trained": row.train_length, **position}
        for row in rows.itertuples()
        for position in row.positions
    )
    if points.empty:
        return points
    octaves = np.log2(np.maximum(points["start"] / points["trained"], 1))
    points["part"] = np.where(octaves > 0, np.floor(octaves * PER_OCTAVE) + points["trained"], points["start"])
    width = points.groupby(["arm", "seed"])["start"].transform(lambda starts: starts.drop_duplicates().diff().min())
    points["position"] = (points["start"] + width / 2) * points["count"]
    points["nats"] *= points["count"]
    sums = points.groupby(["arm", "fit", "seed", "part"])[["position", "nats", "count"]].sum()
    out = sums[["position", "nats"]].div(sums["count"], axis=0).reset_index()
    return out.assign(perplexity=np.exp(out["nats"]))


def position_curve(panel: Panel, out: Path) -> list[Path]:
    """Draw perplexity by position, where rows hold it."""
    seeds = by_position(panel.table)
    if seeds.empty:
        return []
    longest = panel.table["length"].max()
    with matplotlib.rc_context(LOOK):
        figure, axes = grid(1, 1, 6.8, 4.3)
        ax = axes[0, 0]
        ax.set_xscale("log", base=2)
        shade(ax, [(seeds["position"].min(), panel.table["train_length"].max())])
        handles = seed_lines(ax, panel, seeds, "position", "perplexity")
        ax.set(xlabel=f"position in a window of {longest:,} (tokens)")
        level(ax, "perplexity")
        log_lengths(ax, seeds["position"])
        legend(figure, handles, 4)
        figure.suptitle(f"{for_figure(panel.title)}: by position\n{facts(panel)}", fontsize=10, ha="left", x=0.02)
        return [save(figure, out / f"{panel.slug}_position")]
