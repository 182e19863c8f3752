"""The figures of study 1's reproduction: curves, the dilution law over seeds, and one run's analyses of each kind."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from ...analysis import carrier_kernel, min_norm, pinning
from ...plotting import COLOURS
from ...plotting import side_by_side as panels
from ...plotting import trained_lengths as lengths_axis
from ...results.statistics import t_interval
from ..verdicts import Run, of


def figures(runs: list[Run], out: Path) -> list[Path]:
    """Draw what the runs allow; returns the files."""
    out.mkdir(parents=True, exist_ok=True)
    made = {"study1_curves": curves(runs), "study1_dilution": dilution(runs)}
    singles = (
        ("study1_kernel", "offset3", "rope", "carrier_kernel", carrier_kernel),
        ("study1_pinning", "offset3", "learned", "pinning", pinning),
        ("study1_pinning_init1", "offset3", "learned-init1", "pinning", pinning),
        ("study1_min_norm", "linear", "rope-linear", "min_norm", min_norm),
        ("study1_min_norm_fullband", "linear", "rope-fullband-linear", "min_norm", min_norm),
    )
    for name, panel, arm, analysis, module in singles:
        found = [
            run
            for run in of(runs, panel, arm, fitted=False)
            if "heads" in run.analysis.get(analysis, {}) or ("grids" in run.analysis.get(analysis, {}))
        ]
        made[name] = module.figure(found[0].analysis[analysis]) if found else None
    paths = []
    for name, figure in made.items():
        if figure is not None:
            figure.savefig(out / f"{name}.png", dpi=130)
            plt.close(figure)
            paths.append(out / f"{name}.png")
    return paths


def curves(runs: list[Run]):
    """Accuracy against length, one axes per panel; arms that did not fit are dotted and grey."""
    names = list(dict.fromkeys(run.panel for run in runs))
    fig, axes = panels(len(names), width=3.6, height=3.9, columns=4)
    for ax, panel in zip(axes, names, strict=True):
        arms = list(dict.fromkeys(run.arm for run in runs if run.panel == panel))
        for i, arm in enumerate(arms):
            fitted = of(runs, panel, arm)
            shown = fitted or of(runs, panel, arm, fitted=False)
            lengths = sorted(shown[0].accuracy)
            values = np.array([[run.accuracy[n] for n in lengths] for run in shown])
            colour = COLOURS[i % len(COLOURS)] if fitted else "#9a9a9a"
            style = ":" if not fitted else "-" if i < len(COLOURS) else "--"  # colours come round, their lines don't
            label = arm if fitted else f"{arm} (did not fit)"
            ax.plot(lengths, values.mean(0), style, marker="osv^DPX*"[i % 8], ms=3, lw=1.2, color=colour, label=label)
            if len(shown) >= 3 and fitted:
                bands = np.clip([t_interval(column) for column in values.T], 0, 1)
                ax.fill_between(lengths, *bands.T, color=colour, alpha=0.15, lw=0)
        counts = next(run.bag_of_words for run in runs if run.panel == panel)
        ax.plot(
            sorted(counts), [counts[n] for n in sorted(counts)], lw=0.9, ls="--", color="#555555", label="bag of words"
        )
        lengths_axis(ax, 16)
        ax.set(ylim=(-0.02, 1.04), ylabel="accuracy", title=panel)
        ax.legend(fontsize=6.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    return fig


def dilution(runs: list[Run]):
    """1/α - 1 against L - 1 for every fitted seed, with the fit on trained lengths, and the accuracies predicted."""
    results = [
        run.analysis["dilution"] for run in of(runs, "offset3", "rope") if "lengths" in run.analysis.get("dilution", {})
    ]
    if not results:
        return None
    fig, axes = panels(2, width=5)
    lengths = np.array(results[0]["lengths"])
    for i, result in enumerate(results):
        label = "seeds" if i == 0 else None
        axes[0].loglog(
            lengths - 1, 1 / np.array(result["alpha"]) - 1, "o", ms=2.5, alpha=0.6, color=COLOURS[0], label=label
        )
    c = np.mean([result["c_inside"] for result in results])
    axes[0].loglog(
        lengths - 1, c * (lengths - 1), color=COLOURS[1], lw=1.3, label=f"mean c of trained lengths: {c:.3g}"
    )
    axes[0].set(xlabel="L - 1 (tokens)", ylabel="1/α - 1", title="dilution law, RoPE at k = 3")
    for (name, _), colour in zip(results[0]["accuracy"].items(), COLOURS, strict=False):
        values = np.mean([result["accuracy"][name] for result in results], axis=0)
        line = "--" if name == "full_kernel" else "-"
        axes[1].plot(lengths, values, line, marker="o", ms=3, lw=1.2, color=colour, label=name.replace("_", " "))
    lengths_axis(axes[1], 16)
    axes[1].set(ylim=(0, 1.04), ylabel="accuracy", title="predicted and measured, mean over seeds")
    for ax in axes:
        ax.legend(fontsize=7, frameon=False)
    return fig
