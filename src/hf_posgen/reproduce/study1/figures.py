"""The figures of study 1's reproduction: curves, the dilution law over seeds, and one run's analyses of each kind."""

import colorsys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.colors import to_hex, to_rgb

from ...analysis import carrier_kernel, min_norm, pinning
from ...analysis.dilution import draw_predictions
from ...plotting import COLOURS, REFERENCES, legend_below, look, save, side_by_side, trained_lengths
from ...report.style import Style, styles
from ...results.statistics import t_interval
from ..verdicts import Run, runs_of

TRAIN_LENGTH = 16
PANELS = {
    "offset3": "One layer, last query, offset 3",
    "offset1": "One layer, last query, offset 1",
    "offset7": "One layer, last query, offset 7",
    "linear": "Linear attention, offset 3",
    "recurrent": "Linear recurrence, offset 3",
    "anchor": "Two layers without positions",
    "hybrid": "Two layers that differ",
    "multilayer": "Two layers of two heads, every position",
}
ARMS = {
    "rope": "RoPE",
    "learned": "learned",
    "learned-init1": "learned, initial scale 1",
    "learned-shifted": "learned, shifted by up to 1008",
    "learned-shifted32": "learned, shifted by up to 32",
    "sinusoidal": "sinusoidal",
    "none": "no encoding",
    "alibi": "ALiBi",
    "clipped": "clipped distances",
    "rope-lineargrid": "RoPE, even frequencies up to 1",
    "rope-linear": "RoPE",
    "rope-lineargrid-linear": "RoPE, even frequencies up to 1",
    "rope-fullband-linear": "RoPE, even frequencies up to π",
    "rope-fullband": "the same with softmax",
    "learned-linear": "learned, initial scale 1",
    "rope-linear-elu1": "RoPE, normalised (elu + 1)",
    "recurrence-dense": "dense transition",
    "none-2": "without a BOS token",
    "none-2-anchor": "with a BOS token",
    "rope+none": "RoPE, then none",
    "recurrence+softmax": "recurrence, then softmax",
}
SINGLES = (  # the figure of one run: file, panel, arm, analysis
    ("study1_kernel", "offset3", "rope", carrier_kernel),
    ("study1_pinning", "offset3", "learned", pinning),
    ("study1_pinning_init1", "offset3", "learned-init1", pinning),
    ("study1_min_norm", "linear", "rope-linear", min_norm),
    ("study1_min_norm_fullband", "linear", "rope-fullband-linear", min_norm),
)


def figures(runs: list[Run], out: Path) -> list[Path]:
    """Draw what the runs allow; return the files."""
    with look():
        made = {"study1_curves": curves(runs), "study1_dilution": dilution(runs)}
        for name, panel, arm, analysis in SINGLES:
            result = first_result(runs_of(runs, panel, arm, fitted=False), analysis.__name__.rpartition(".")[2])
            made[name] = analysis.figure(result) if result else None
        return [save(figure, out / name) for name, figure in made.items() if figure is not None]


def first_result(runs: list[Run], analysis: str) -> dict | None:
    """Return what an analysis measured in the first run that has it; None where none has."""
    results = (run.analysis.get(analysis, {"not_applicable": ""}) for run in runs)
    return next((result for result in results if "not_applicable" not in result), None)


def curves(runs: list[Run]):
    """Draw accuracy against length, one axes per panel; None where nothing was run."""
    panels = list(dict.fromkeys(run.panel for run in runs))
    if not panels:
        return None
    figure, axes = side_by_side(len(panels), width=5, height=5, columns=3)
    for ax, panel in zip(axes, panels, strict=True):
        in_panel = [run for run in runs if run.panel == panel]
        for arm, style in arm_styles(in_panel).items():
            arm_curve(ax, runs_of(runs, panel, arm), runs_of(runs, panel, arm, fitted=False), style)
        lengths = sorted(length for length, value in in_panel[0].bag_of_words.items() if value is not None)
        colour, dash = REFERENCES["bag of words"]
        values = [in_panel[0].bag_of_words[length] for length in lengths]
        ax.plot(lengths, values, lw=1.1, ls=dash, color=colour, label="bag of words")
        trained_lengths(ax, sorted(in_panel[0].accuracy), TRAIN_LENGTH)
        ax.set(ylim=(-0.03, 1.05), ylabel="accuracy, exact match")
        ax.set_title(PANELS.get(panel, panel), fontweight="bold")
        legend_below(ax)
    seeds = len({run.seed for run in runs})
    words = f"up to {seeds} seeds: mean over those that fit and its 95 % interval"
    figure.suptitle(f"Unseen lengths\n{words}", fontsize=10, ha="left", x=0.02)
    return figure


def arm_curve(ax, fitted: list[Run], all_runs: list[Run], style: Style) -> None:
    """Draw an arm's mean over its fitted runs with an interval; where none fits, the mean over all, dotted."""
    shown, dash = (fitted, style.dash) if fitted else (all_runs, ":")
    lengths = sorted(shown[0].accuracy)
    values = np.array([[run.accuracy[length] for length in lengths] for run in shown])
    fill = "white" if style.variant else style.colour
    label = ARMS.get(shown[0].arm, shown[0].arm) + ("" if fitted else " (did not fit)")
    line = {"color": style.colour, "ls": dash, "lw": 1.3, "marker": style.marker, "ms": 4, "mfc": fill, "label": label}
    ax.plot(lengths, values.mean(0), **line)
    if len(fitted) >= 3:
        bands = np.clip([t_interval(column) for column in values.T], 0, 1)
        ax.fill_between(lengths, *bands.T, color=style.colour, alpha=0.15, lw=0)


def arm_styles(runs: list[Run]) -> dict[str, Style]:
    """Return {arm: style}: the reports' colour and marker of its encoding; further arms of one encoding in other shades."""
    looks = styles({run.arm: run.encoding for run in runs})
    return {arm: replace(style, colour=shaded(style.colour, style.variant)) for arm, style in looks.items()}


def shaded(colour: str, variant: int) -> str:
    """Return a colour of the same hue: lighter and darker in turn, farther off the higher the variant."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*to_rgb(colour))
    lightness += (0, 0.22, -0.16, 0.34, -0.24)[variant % 5]
    return to_hex(colorsys.hls_to_rgb(hue, min(0.8, max(0.08, lightness)), saturation))


def dilution(runs: list[Run]):
    """Draw 1/α - 1 against L - 1 for every fitted seed with the mean fit on trained lengths, and the accuracies predicted;
    None where no run was analysed."""
    results = [run.analysis.get("dilution", {}) for run in runs_of(runs, "offset3", "rope")]
    results = [result for result in results if "lengths" in result]
    if not results:
        return None
    figure, (left, right) = side_by_side(2, width=5)
    lengths = np.array(results[0]["lengths"])
    for i, result in enumerate(results):
        label = f"measured, {len(results)} seeds" if i == 0 else None
        inverse = 1 / np.array(result["alpha"]) - 1
        left.loglog(lengths - 1, inverse, "o", ms=2.5, alpha=0.6, color=COLOURS[0], label=label)
    c = np.mean([result["c_inside"] for result in results])
    label = f"fit on trained lengths, mean c = {c:.3g}"
    left.loglog(lengths - 1, c * (lengths - 1), color=COLOURS[1], lw=1.3, label=label)
    left.set(xlabel="L - 1 (tokens)", ylabel="1/α - 1", title="dilution law, RoPE at offset 3")
    names = results[0]["accuracy"]
    draw_predictions(right, lengths, {n: np.mean([r["accuracy"][n] for r in results], axis=0) for n in names})
    right.set_title(f"accuracy, measured and predicted\nmean over {len(results)} seeds")
    trained_lengths(right, lengths, TRAIN_LENGTH)
    for ax in (left, right):
        legend_below(ax, 1)
    return figure
