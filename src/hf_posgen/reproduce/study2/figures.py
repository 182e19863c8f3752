"""The figures of study 2's reproduction: one message each, from whatever was run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...plotting import GRID, SHADE, grid, legend, look, reference_lines, save
from ...report.curves import curve
from ...report.two_by_two import two_by_two
from ...results.columns import label
from ...results.frame import frame, panels
from ...results.panel import Panel
from ...results.statistics import t_interval
from ...run.folder import RunFolder
from ..verdicts import runs_of
from .evaluated import grid_rows
from .figures_by_count import arm_styles, diversity, headline, size
from .streams import ARMS, FIRST, REST, TOKENS, StreamRun

OTHER = "#d9e3ee"  # the other task's trained delays
ALONE = {"color": "#777777", "ls": (0, (3, 2))}  # a model of one task
NAMES = {"full": "full copies (C)", "selective": "selective copies (S)"}


def figures(runs: list[StreamRun], out: Path, study1: Path | None = None) -> list[Path]:
    """Draw what the runs allow; return the files. study1: that study's folder, for the side panel of the 2 x 2."""
    with look():
        made = {
            "study2_delays": delays(runs),
            "study2_diversity": diversity(runs),
            "study2_transfer": transfer(runs, "c"),
            "study2_transfer_separated": transfer(runs, "c-separated"),
            "study2_size": size(runs),
        }
        paths = [save(figure, out / name) for name, figure in made.items() if figure is not None]
    rows = grid_rows(runs)
    beside = panels(frame(RunFolder(study1).rows())) if study1 else []
    shown = [replace(panel, siblings=beside) for panel in panels(frame(rows))] if rows else []
    return paths + [path for panel in shown for path in two_by_two(panel, out)]


def delays(runs: list[StreamRun]):
    """Draw claim A: accuracy against the delay, first pasted token and rest apart; None where neither kind was
    run."""
    kinds = [kind for kind in NAMES if any(run.panel == f"a {kind}" for run in runs)]
    if not kinds:
        return None
    figure, all_axes = grid(len(kinds), 2, 5.2, 3.3)
    handles = []
    for row, kind in zip(all_axes, kinds, strict=True):
        panel = panel_of(runs, f"a {kind}")
        for ax, metric in zip(row, (FIRST, REST), strict=True):
            handles += curve(ax, panel, "distance", metric)
            ax.set_xlabel("delay between the marks (tokens)" if kind == kinds[-1] else "")
            ax.set_ylabel("accuracy" if metric == FIRST else "")
            ax.set_title(f"{NAMES[kind]}: {label(metric)}", pad=14, fontweight="bold")
    legend(figure, handles, 4)
    return headline(figure, "Unseen delays", [run for run in runs if run.panel.startswith("a ")])


def panel_of(runs: list[StreamRun], name: str) -> Panel:
    """Return a panel of the study as the reports know it."""
    return Panel(frame([row for run in runs if run.panel == name for row in run.rows]), name, name)


def transfer(runs: list[StreamRun], study: str):
    """Draw claim C: each task alone and in the mixture, at the same exposure, against the delay; None where no mixture was
    run."""
    if not any(run.panel.startswith(f"{study} mixed") for run in runs):
        return None
    figure, all_axes = grid(2, len(ARMS), 3.6, 3.0)
    references_by_name = {}
    for row, (kind, other) in zip(all_axes, (("full", "selective"), ("selective", "full")), strict=True):
        trained = {task: next(r.trained for r in runs if r.panel == f"{study} mixed {task}") for task in (other, kind)}
        shared = panel_of(runs, f"{study} mixed {kind}").references("distance", TOKENS)
        for ax, arm in zip(row, ARMS, strict=True):
            ax.axvspan(*trained[other], color=OTHER, lw=0, zorder=0)
            ax.axvspan(*trained[kind], color=SHADE, lw=0, zorder=0)
            references_by_name |= {handle.get_label(): handle for handle in reference_lines(ax, shared)}
            mean_curve(ax, runs_of(runs, f"{study} {kind}", arm), **ALONE)
            mean_curve(ax, runs_of(runs, f"{study} mixed {kind}", arm), color=arm_styles()[arm].colour, ls="-")
            ax.set(ylim=(-0.03, 1.05), title=f"{arm}: {NAMES[kind]}")
            ax.grid(axis="y", **GRID)
            ax.set_ylabel("token accuracy" if arm == ARMS[0] else "")
            ax.set_xlabel("delay (tokens)" if kind == "selective" else "")
    handles = [
        Line2D([], [], color="#222222", lw=1.8, label="both tasks in one stream"),
        Line2D([], [], lw=1.4, label="this task alone, same exposure", **ALONE),
        Patch(color=OTHER, label="the other task's trained delays"),
        *references_by_name.values(),
    ]
    legend(figure, handles, 4)
    shown = [run for run in runs if run.panel.startswith(f"{study} ")]
    return headline(figure, "What one task gains or loses by the other", shown)


def mean_curve(ax, runs: list[StreamRun], color: str, ls) -> None:
    """Draw the mean token accuracy over fitted seeds against the delay, from three seeds on with its interval."""
    if not runs:
        return
    distances = sorted(runs[0].points)
    values = np.array([[run.points[distance][TOKENS] for distance in distances] for run in runs])
    ax.plot(distances, values.mean(0), color=color, ls=ls, lw=1.6)
    if len(runs) >= 3:
        ends = np.clip([t_interval(column) for column in values.T], 0, 1)
        ax.fill_between(distances, *ends.T, color=color, alpha=0.17, lw=0)
