"""A report from rows: report.md, figures and an explorable page. Reads no model."""

from dataclasses import dataclass
from pathlib import Path

from .files import read_rows, write_text
from .report_data import LABELS, axes, axis_table, fit_table, frame, metrics, summary_tables, trained_range

__all__ = ["ReportPaths", "collect_rows", "report", "summary_tables"]


@dataclass(frozen=True)
class ReportPaths:
    markdown: Path
    figures: list[Path]


def collect_rows(folders) -> list[dict]:
    """The rows of run and sweep folders. Raises `ValueError` for a folder that holds none."""
    rows = []
    for folder in map(Path, folders):
        found = read_rows(folder / "results.jsonl")
        if not found:
            raise ValueError(f"{folder} holds no results.jsonl with rows: evaluate it first")
        rows += found
    return rows


def report(rows: list[dict], out: str | Path, title: str = "Extrapolation report") -> ReportPaths:
    """Write out/report.md and out/figures/*.png|pdf. Raises `ValueError` where there are no rows."""
    from . import report_figures as draw

    table, out = frame(rows), Path(out)
    figures = [draw.overview(table, out / "figures")]
    blocks = [f"# {title}", "![overview](figures/overview.png)", _reading(table)]
    for panel, part in table.groupby("panel"):
        mine = draw.curves(part, panel, out / "figures") + draw.heat_maps(part, panel, out / "figures")
        figures += mine
        blocks += [f"## {panel}", _facts(part), fit_table(part).to_markdown()]
        blocks += [f"![{path.stem}](figures/{path.name})" for path in mine]
        for axis in axes(part):
            low, high = trained_range(part, axis)
            for metric in metrics(part):
                blocks.append(f"### {LABELS[metric]} by {axis} (trained {low:.0f} to {high:.0f})")
                blocks.append(axis_table(part, axis, metric, most=16).to_markdown())
    write_text(out / "report.md", "\n\n".join(blocks) + "\n")
    return ReportPaths(out / "report.md", figures)


def _reading(table) -> str:
    seeds = table.groupby("panel")["seed"].nunique().min()
    few = "" if seeds >= 3 else f" With {seeds} seed{'s' if seeds > 1 else ''} there are points and no intervals."
    return (
        "Means over the seeds that fit in distribution, with Student's t intervals over seeds. An arm marked * did not "
        "fit: it is drawn grey and says nothing about generalisation. The trained range is shaded; dashed: chance."
        + few
    )


def _facts(part) -> str:
    row = part.iloc[0]
    counts = sorted(part["count"].unique())
    return (
        f"Task `{row['task']}`, trained on lengths up to {row['train_length']}; {counts[0]} sequences per cell, "
        f"model in {row['dtype']}, weights selected on: {row['selected_on']}."
    )
