"""Names that a user chose are shown as they are, in every format."""

import re

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hf_posgen.report.captions import caption
from hf_posgen.report.curves import curve
from hf_posgen.report.escape import for_markdown
from hf_posgen.report.headline_tables import headline_sections
from hf_posgen.report.maps import heat_maps
from hf_posgen.report.page import describe, page
from hf_posgen.report.tables import axis_table, fit_table, split_table
from hf_posgen.results.frame import frame, panels
from tests.helpers.synthetic_rows import study1

NAMES = [
    "a|b",
    "a||b|",
    r"a\|b",
    "a`b`",
    "*a* _b_",
    "<b>x</b>",
    "$x_1$ and $y^2$",
    "$\\nope{$",
    "_hidden",
    "two\nlines",
    "a & b",
]


def rows_named(name):
    return [row | {"arm": name} if row["arm"] == "rope" else row for row in study1(3, arms=("none", "rope"), unfit=())]


def columns(line: str) -> int:
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) - 1


@pytest.mark.parametrize("name", NAMES)
def test_a_name_breaks_no_table(name):
    (panel,) = panels(frame(rows_named(name)))
    tables = [fit_table(panel), split_table(panel), axis_table(panel, "length", "exact_match")]
    tables += [section.table for section in headline_sections(panel) if section.table]
    for table in tables:
        lines = table.markdown().splitlines()
        assert len(lines) == len(table.lines) + 2 and {columns(line) for line in lines} == {len(table.head)}, lines
        assert "<b>" not in "".join(lines)


def test_markdown_marks_are_escaped():
    assert for_markdown("a|b") == r"a\|b" and for_markdown("*a* _b_") == r"\*a\* \_b\_"
    assert for_markdown("rope_yarn [0.9, 1.0]") == "rope_yarn [0.9, 1.0]", "what is no mark stays"
    assert for_markdown("<b>") == "&lt;b&gt;" and for_markdown("a\nb") == "a b"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_drawn_as_it_is(name, tmp_path):
    (panel,) = panels(frame(rows_named(name)))
    figure = Figure()
    handles = curve(figure.subplots(), panel, "length", "exact_match")
    legend = figure.legend(handles=handles)
    FigureCanvasAgg(figure).draw()
    assert len(legend.get_texts()) == len(handles), "no name is left out"
    assert heat_maps(panel, tmp_path)[0].is_file() and caption(panel, "length", "exact_match")
    text = page([describe(panel)], name)
    assert "<b>x" not in text and text.count("</script>") == 2


def test_panels_of_like_names_have_files_of_their_own():
    rows = [row | {"panel": name} for name in ("a b", "a+b", "é", "ü", "x" * 300, "x" * 301) for row in study1(1)]
    slugs = [panel.slug for panel in panels(frame(rows))]
    assert len(set(slugs)) == len(slugs) == 6
    assert all(re.fullmatch(r"[a-z0-9-]{1,100}", slug) for slug in slugs)
