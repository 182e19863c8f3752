"""The figures: curves with the trained range shaded, and length × distance heat maps."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from .report_data import LABELS, along, arms, axes, by_seed, metrics, trained_range
from .statistics import t_interval

# Okabe and Ito's palette, which people with any colour vision can tell apart; a marker doubles each.
STYLES = {
    "rope": ("#0072B2", "o"),
    "learned": ("#D55E00", "s"),
    "alibi": ("#009E73", "^"),
    "none": ("#000000", "D"),
    "sinusoidal": ("#CC79A7", "v"),
}
SPARE = [("#E69F00", "P"), ("#56B4E9", "X"), ("#882255", "<"), ("#44AA99", ">"), ("#999933", "h"), ("#661100", "p")]
GREY = "#9a9a9a"


def style_of(table) -> dict[str, tuple[str, str]]:
    """{arm: (colour, marker)}; an encoding has the same in every figure."""
    first = table.drop_duplicates("arm").set_index("arm")["encoding"]
    out, spare, used = {}, iter(SPARE * 5), set()
    for arm in arms(table):
        own = STYLES.get(first[arm])
        out[arm] = own if own and own not in used else next(spare)
        used.add(out[arm])
    return out


def save(figure, path: Path) -> Path:
    """PNG and PDF side by side; returns the PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".png", ".pdf"):
        figure.savefig(path.with_suffix(suffix), dpi=160, bbox_inches="tight")
    plt.close(figure)
    return path.with_suffix(".png")


def curve(ax, table, axis: str, metric: str, styles) -> None:
    """One line per arm: the mean over the seeds that fit, with a t interval from three seeds, single points below."""
    seeds = by_seed(table, axis, metric)
    low, high = trained_range(table, axis)
    ax.axvspan(low, high, color="#f2e6b8", zorder=0, label="trained range")
    for arm in arms(table):
        mine = seeds[seeds["arm"] == arm]
        fitted = mine[mine["fit"].astype(bool)]
        colour, marker = styles[arm]
        name, shown = (arm, fitted) if len(fitted) else (f"{arm} (did not fit)", mine)
        colour = colour if len(fitted) else GREY
        mean = shown.groupby(axis)[metric].mean()
        ax.plot(mean.index, mean, color=colour, marker=marker, ms=4, lw=1.6, label=name, ls="-" if len(fitted) else ":")
        counts = shown.groupby(axis)[metric]
        if counts.size().max() >= 3:
            bands = [t_interval(values.tolist()) or (values.mean(), values.mean()) for _, values in counts]
            ax.fill_between(mean.index, *np.clip(np.array(bands).T, 0, 1), color=colour, alpha=0.18, lw=0)
        elif counts.size().max() == 2:
            ax.plot(shown[axis], shown[metric], color=colour, marker=marker, ms=2.5, lw=0, alpha=0.6)
    references(ax, table, axis, metric)
    ax.set(ylim=(-0.02, 1.04), xlabel=f"{axis} (tokens)", ylabel=LABELS[metric])
    if axis == "length":
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
    ax.grid(alpha=0.25, lw=0.5)


def references(ax, table, axis: str, metric: str) -> None:
    """Chance, a ceiling below 1, and what strategies that ignore the distance reach."""
    rows = along(table, axis).sort_values(axis)
    points = rows.drop_duplicates(axis)
    ax.plot(points[axis], points["chance"], color="#555555", lw=0.9, ls="--", label="chance")
    if (points["ceiling"] < 0.999).any():
        ax.plot(points[axis], points["ceiling"], color="#555555", lw=0.9, ls="-.", label="ceiling")
    names = {"bag_of_words": "exact_match", "induction_1gram": "rest_accuracy", "induction_2gram": "rest_accuracy"}
    for (name, where), line in zip(names.items(), (":", ":", (0, (1, 3))), strict=True):
        values = [b.get(name) if isinstance(b, dict) else None for b in points["baselines"]]
        if where == metric and any(v is not None for v in values):
            ax.plot(points[axis], values, color="#888888", lw=1.1, ls=line, label=name.replace("_", " "))


def curves(table, panel: str, out: Path) -> list[Path]:
    """One figure per axis, one axes per metric."""
    styles, paths = style_of(table), []
    for axis in axes(table):
        shown = metrics(table)
        figure, row = plt.subplots(1, len(shown), figsize=(5.6 * len(shown), 3.9), squeeze=False)
        for ax, metric in zip(row[0], shown, strict=True):
            curve(ax, table, axis, metric, styles)
        row[0][-1].legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        figure.suptitle(f"{panel}: {title_of(table)}", fontsize=10)
        paths.append(save(figure, out / f"{panel}_{axis}"))
    return paths


def title_of(table) -> str:
    seeds, task = table["seed"].nunique(), table["task"].iloc[0].replace("_", " ")
    parameters = sorted(table["parameters"].unique())
    size = f"{parameters[0]:,}" if len(parameters) == 1 else f"{parameters[0]:,} to {parameters[-1]:,}"
    return f"{task}, {size} parameters, {seeds} seed{'s' if seeds > 1 else ''}"


def heat_maps(table, panel: str, out: Path) -> list[Path]:
    """Length × distance, one map per arm, where the rows hold a grid."""
    if table["length"].nunique() < 2 and table["distance"].nunique() < 2:
        return []
    metric, names = metrics(table)[0], arms(table)
    figure, row = plt.subplots(1, len(names), figsize=(2.1 + 2.3 * len(names), 3.4), squeeze=False, sharey=True)
    image = None
    for ax, arm in zip(row[0], names, strict=True):
        mine = table[table["arm"] == arm]
        kept = mine[mine["fit"].astype(bool)]
        shown = (kept if len(kept) else mine).pivot_table(index="distance", columns="length", values=metric)
        image = ax.imshow(
            shown, origin="lower", aspect="auto", vmin=0, vmax=1, cmap="viridis" if len(kept) else "Greys_r"
        )
        ticks(ax.xaxis, shown.columns)
        ticks(ax.yaxis, shown.index)
        outline(ax, mine, shown)
        ax.set_title(arm if len(kept) else f"{arm}\n(did not fit)", fontsize=9)
        ax.set_xlabel("length")
    row[0][0].set_ylabel("distance")
    figure.colorbar(image, ax=row[0].tolist(), label=LABELS[metric], fraction=0.03)
    return [save(figure, out / f"{panel}_heat")]


def ticks(axis, values) -> None:
    step = max(1, len(values) // 8)
    axis.set_ticks(range(0, len(values), step), [f"{v:.0f}" for v in values[::step]], fontsize=7)


def outline(ax, table, shown) -> None:
    """A box around the trained cells."""
    spans = []
    for values, axis in ((list(shown.columns), "length"), (list(shown.index), "distance")):
        low, high = trained_range(table, axis)
        inside = [i for i, value in enumerate(values) if low <= value <= high]
        if not inside:
            return
        spans.append((inside[0] - 0.5, inside[-1] + 0.5))
    (x0, x1), (y0, y1) = spans
    ax.add_patch(plt.Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, ec="#ff5555", lw=1.4))


def overview(table, out: Path) -> Path:
    """Each panel once, by its first metric and axis: the picture for a README."""
    panels = [(name, part) for name, part in table.groupby("panel") if axes(part)]
    figure, row = plt.subplots(1, max(1, len(panels)), figsize=(6.2 * max(1, len(panels)), 3.9), squeeze=False)
    for ax, (name, part) in zip(row[0], panels, strict=False):
        axis = axes(part)[-1]
        curve(ax, part, axis, metrics(part)[0], style_of(table))
        ax.set_title(f"{name}: unseen {axis}", fontsize=10)
        ax.legend(fontsize=7, frameon=False, loc="upper right" if axis == "distance" else "lower left")
    return save(figure, out / "overview")
