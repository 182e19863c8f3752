"""A report from rows: report.md, figures and report.html. Reads no model."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

from ..common.files import read_rows, require_folder, write_text
from ..common.names import unknown
from ..common.yaml_text import read_yaml
from ..results.definitions import DEFINITIONS
from ..results.frame import frame, panels
from ..results.panel import Panel
from ..run.folder import REPORT, RESULTS, RunFolder
from ..run.imports import import_modules
from .captions import caption, facts
from .escape import for_markdown
from .headline_tables import Section, headline_sections
from .page import describe, write_page
from .tables import axis_table, fit_table, split_table, summary_tables

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
        found[folder] = read_rows(folder / RESULTS)
    empty = ", ".join(str(folder) for folder, rows in found.items() if not rows)
    if not any(found.values()):
        raise ValueError(f"{empty} holds no results.jsonl with rows: evaluate it first")
    if empty:
        warnings.warn(f"{empty} holds no results.jsonl with rows and is left out", stacklevel=2)
    every = [row for rows in found.values() for row in rows]
    return list({json.dumps(row, sort_keys=True): row for row in every}.values())  # a sweep and its runs hold the same


def import_modules_of(folders) -> None:
    """Import the modules that the runs of run and sweep folders name, which may register figures.

    Rows need none of them: one that isn't there, or fails, is left out with a warning."""
    runs = [RunFolder(path).run_file for folder in map(Path, folders) for path in (folder, *sorted(folder.glob("*/")))]
    named = [name for file in runs if file.is_file() for name in read_yaml(file).get("imports") or ()]
    for name in dict.fromkeys(named):
        try:
            import_modules([name])
        except ValueError as error:
            warnings.warn(f"{error}; the report is made without it", stacklevel=2)


def declared_contrasts(folders) -> list[tuple[str, str]] | None:
    """The pairs of arms that sweep folders declare to test; None where none does, and all pairs are."""
    trees = [read_yaml(file) for folder in folders if (file := Path(folder) / "sweep.yaml").is_file()]
    declared = {frozenset(pair): tuple(pair) for tree in trees for pair in tree.get("contrasts", ())}
    return list(declared.values()) if any("contrasts" in tree for tree in trees) else None


def relabel(rows: list[dict], labels: dict[str, str]) -> list[dict]:
    """Return rows whose arms have the names of {arm: name to show}; others keep their own.

    Raises `ValueError` for an arm that no row has, a label without text, and two arms that would have one name."""
    arms = list(dict.fromkeys(row.get("arm") for row in rows))
    for arm, text in labels.items():
        if arm not in arms:
            raise unknown("arm", arm, arms)
        if not str(text).strip():
            raise ValueError(f"the label of arm {arm!r} is empty; it must hold text")
    shown = {arm: labels.get(arm, arm) for arm in arms}
    for name in shown.values():
        if len(twins := [str(arm) for arm in arms if shown[arm] == name]) > 1:
            raise ValueError(
                f"the arms {', '.join(twins)} would all be shown as {name!r}; each needs a name of its own"
            )
    return [row | {"arm": shown[row["arm"]]} for row in rows] if labels else rows


def report(
    rows: list[dict],
    out: str | Path,
    title: str = "Extrapolation report",
    contrasts: list[tuple[str, str]] | None = None,
    labels: dict[str, str] | None = None,
) -> ReportPaths:
    """Write out/report.md, out/report.html and out/figures/*.png|pdf. contrasts: the pairs of arms to test (default: all).
    labels: {arm: the name to show for it} (default: its own); contrasts name arms as rows do. Raises `ValueError` where
    there are no rows, and as `relabel` does."""
    from .curves import overview as draw_overview
    from .figures import FIGURES

    labels = labels or {}
    rows = relabel(rows, labels)
    if contrasts is not None:
        contrasts = [(labels.get(one, one), labels.get(other, other)) for one, other in contrasts]
    require_folder(out)
    shown, out = panels(frame(rows)), Path(out)
    overview = draw_overview(shown, out / "figures")
    figures, described = [overview] if overview else [], []
    blocks = [
        f"# {for_markdown(title)}",
        *([f"![Every study at a glance](figures/{overview.name})"] if overview else []),
        READING,
        EXPLORE,
    ]
    for panel in shown:
        drawn = [path for draw in FIGURES.values() for path in draw(panel, out / "figures")]
        figures += drawn
        sections = headline_sections(panel, contrasts)
        blocks += _panel(panel, drawn, sections)
        described.append(describe(panel, sections))
    blocks += ["## What the numbers are", DEFINITIONS]
    write_text(out / REPORT, "\n\n".join(blocks) + "\n")
    return ReportPaths(out / REPORT, figures, write_page(described, out, title))


READING = """\
The trained range is shaded. From three seeds on, lines are means over the seeds that fit in distribution, with Student's t
interval over seeds; with fewer, every seed is a line of its own and there is no interval. An arm that did not fit (*) is
grey: nothing can be concluded about its generalisation, and it is left out of every mean. Small models show what can happen
at their size; they refute nothing. Heat maps are exploratory.

Where all four combinations of seen and unseen were evaluated, a 2 × 2 figure sets them side by side. Why an encoding may
hold at an unseen length and miss at an unseen distance: a kernel that depends on the offset alone goes on selecting the
trained offset at any length, and for the same reason where the distance changes. That is a hypothesis: these rows don't
test it."""

EXPLORE = "[report.html](report.html) holds the same rows to explore: encodings, splits, maps, a table to sort."


def _panel(panel: Panel, figures: list[Path], sections: list[Section]) -> list[str]:
    blocks = [f"## {for_markdown(panel.title)}", _facts(panel), fit_table(panel).markdown()]
    blocks += [f"![{path.stem.replace('_', ' ')}](figures/{path.name})" for path in figures]
    if not panel.axes:
        blocks += ["### By split", split_table(panel).markdown()]
    for section in sections:
        blocks += [
            f"### {section.title}",
            *([section.table.markdown()] if section.table else []),
            *map(for_markdown, section.notes),
        ]
    for axis in panel.axes:
        for metric in panel.metrics:
            words = caption(panel, axis, metric)
            table = axis_table(panel, axis, metric, most=24)
            blocks += [f"### {words[:1].upper()}{words[1:]}", table.markdown()]
    return blocks


def _facts(panel: Panel) -> str:
    row = panel.table.iloc[0]
    words = [f"Task `{row['task']}`", facts(panel)]
    words += [f"model in {row['dtype']}"] if "dtype" in row else []
    words += [f"weights selected on: {row['selected_on']}"] if isinstance(row.get("selected_on"), str) else []
    return ", ".join(words) + "."
