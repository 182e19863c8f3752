"""A report from rows: report.md, figures and report.html. Reads no model."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

from ..common.files import read_rows, write_text
from ..results.frame import Panel, axes, facts, frame, metrics, panels
from ..results.headlines import DEFINITIONS, contrast_table, far_table, headline_table, over_all_seeds
from ..run.tree import read_yaml
from .page import write_page
from .tables import axis_table, caption, fit_table, markdown, split_table, summary_tables

__all__ = ["ReportPaths", "collect_rows", "declared_contrasts", "report", "summary_tables"]


@dataclass(frozen=True)
class ReportPaths:
    """figures: the PNGs; a PDF lies beside each. page: the one to explore."""

    markdown: Path
    figures: list[Path]
    page: Path


def collect_rows(folders) -> list[dict]:
    """The rows of run and sweep folders; one that holds none (a run that isn't finished) is left out with a warning. Raises
    `ValueError` where a folder isn't there, or none holds any."""
    found = {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise ValueError(f"no such folder: {folder}")
        found[folder] = read_rows(folder / "results.jsonl")
    empty = ", ".join(str(folder) for folder, rows in found.items() if not rows)
    if not any(found.values()):
        raise ValueError(f"{empty} holds no results.jsonl with rows: evaluate it first")
    if empty:
        warnings.warn(f"{empty} holds no results.jsonl with rows and is left out", stacklevel=2)
    every = [row for rows in found.values() for row in rows]
    return list({json.dumps(row, sort_keys=True): row for row in every}.values())  # a sweep and its runs hold the same


def declared_contrasts(folders) -> list[tuple[str, str]] | None:
    """The pairs of arms that sweep folders declare to test; None where none does, and all pairs are."""
    trees = [read_yaml(file) for folder in folders if (file := Path(folder) / "sweep.yaml").is_file()]
    declared = {frozenset(pair): tuple(pair) for tree in trees for pair in tree.get("contrasts", ())}
    return list(declared.values()) if any("contrasts" in tree for tree in trees) else None


def report(
    rows: list[dict],
    out: str | Path,
    title: str = "Extrapolation report",
    contrasts: list[tuple[str, str]] | None = None,
) -> ReportPaths:
    """Write out/report.md, out/report.html and out/figures/*.png|pdf. contrasts: the pairs of arms to test (default: all).
    Raises `ValueError` where there are no rows."""
    from . import curves as draw
    from .maps import heat_maps
    from .positions import position_curve
    from .two_by_two import one_fixed_distance, two_by_two

    shown, out = panels(frame(rows)), Path(out)
    overview = draw.overview(shown, out / "figures")
    figures = [overview] if overview else []
    blocks = [
        f"# {title}",
        *([f"![Every study at a glance](figures/{overview.name})"] if overview else []),
        READING,
        EXPLORE,
    ]
    for panel in shown:
        mine = [path for make in (draw.curves, position_curve, heat_maps) for path in make(panel, out / "figures")]
        mine += two_by_two(panel, one_fixed_distance(shown), out / "figures")
        figures += mine
        blocks += _panel(panel, mine, contrasts)
    blocks += ["## What the numbers are", DEFINITIONS]
    write_text(out / "report.md", "\n\n".join(blocks) + "\n")
    return ReportPaths(out / "report.md", figures, write_page(rows, out, title))


READING = """\
The trained range is shaded. From three seeds on, lines are means over the seeds that fit in distribution, with Student's t
interval over seeds; with fewer, every seed is a line of its own and there is no interval. An arm that did not fit (*) is
grey: it says nothing about generalisation, and enters no mean. Small models show what can happen at their size; they refute
nothing. Heat maps are exploratory.

Where all four combinations of seen and unseen were asked, a 2 × 2 figure sets them side by side. Why an encoding may hold
at an unseen length and miss at an unseen distance: a kernel that depends on the offset alone goes on selecting the trained
offset at any length, and for the same reason where the distance changes. That is a hypothesis: these rows don't test it."""

EXPLORE = "[report.html](report.html) holds the same rows to explore: encodings, splits, maps, a table to sort."


def _panel(panel: Panel, figures: list[Path], pairs: list[tuple[str, str]] | None) -> list[str]:
    table = panel.table
    blocks = [f"## {panel.title}", _facts(table), markdown(*fit_table(table))]
    blocks += [f"![{path.stem.replace('_', ' ')}](figures/{path.name})" for path in figures]
    if not axes(table):
        blocks += ["### By split", markdown(*split_table(table))]
    head, lines = headline_table(table)
    if len(head) > 1:
        blocks += ["### Headline numbers", markdown(head, lines)]
    if over_all_seeds(table):
        blocks.append(f"Those are over the seeds that fit. {over_all_seeds(table)}.")
    for heading, made in (("Study 2's numbers", far_table(table)), ("Differences", contrast_table(table, pairs))):
        blocks += [f"### {heading}", markdown(*made)] if made else []
    for axis in axes(table):
        for metric in metrics(table):
            said = caption(panel, axis, metric)
            blocks += [f"### {said[:1].upper()}{said[1:]}", markdown(*axis_table(table, axis, metric, most=24))]
    return blocks


def _facts(table) -> str:
    row = table.iloc[0]
    words = [f"Task `{row['task']}`", facts(table)]
    words += [f"model in {row['dtype']}"] if "dtype" in table else []
    words += [f"weights selected on: {row['selected_on']}"] if isinstance(row.get("selected_on"), str) else []
    return ", ".join(words) + "."
