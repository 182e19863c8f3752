"""Figures from outside the package: a module that runs import may register its own."""

import pytest

import hf_posgen
from hf_posgen.cli.dispatch import main
from hf_posgen.common.files import write_rows
from hf_posgen.report.figures import FIGURES, register_figure
from tests.helpers.synthetic_rows import study1

MODULE = """
from matplotlib.figure import Figure

from hf_posgen import register_figure
from hf_posgen.plotting import save


def seeds(panel, out):
    figure = Figure()
    figure.subplots().bar(list(panel.fits), [seeds for _, seeds in panel.fits.values()])
    return [save(figure, out / f"{panel.slug}_own_seeds")]


register_figure("own_seeds", seeds)
"""


@pytest.mark.parametrize("inside", ["", "one-run"])
def test_a_figure_of_the_users_own(tmp_path, monkeypatch, capsys, inside):
    """The module is found by the imports of the run, or of the runs of a sweep."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hf_posgen.report.figures.FIGURES", dict(FIGURES))
    module = f"own_figure_{len(inside)}"
    (tmp_path / f"{module}.py").write_text(MODULE)
    rows = [row for row in study1(1, arms=("rope",), unfit=()) if row["length"] in (4, 16, 48)]
    write_rows(tmp_path / "runs" / "results.jsonl", rows)
    run = tmp_path / "runs" / inside / "run.yaml"
    run.parent.mkdir(exist_ok=True)
    run.write_text(f"imports: {{{module}: null, not_there: null}}\n")
    main(["report", "runs", "-o", "out"])
    assert "no module 'not_there'" in (warned := capsys.readouterr().err) and "report is made without it" in warned
    assert (tmp_path / "out" / "figures" / "study1_own_seeds.png").is_file()
    assert "study1_own_seeds.png" in (tmp_path / "out" / "report.md").read_text()


def test_a_name_is_registered_once(monkeypatch):
    monkeypatch.setattr("hf_posgen.report.figures.FIGURES", dict(FIGURES))
    hf_posgen.register_figure("curves", FIGURES["curves"])
    with pytest.raises(ValueError, match="figure 'curves' is registered already .*curves.*; choose another name"):
        register_figure("curves", lambda panel, out: [])
