"""What a sweep prints at its end."""

from hf_posgen.cli.outcome import checkpoints, print_outcome
from hf_posgen.common.files import write_rows
from hf_posgen.run.folder import RunFolder


def a_sweep(out):
    """Rows of two panels: in the second an arm fits with one seed of two, another with none."""
    runs = [
        ("study1", "learned", 0, True, 1.0),
        ("study1", "learned", 1, True, 0.99),
        ("study1", "rope", 0, True, 0.98),
        ("study2", "rope", 0, False, 0.99),
        ("study2", "rope", 1, True, 0.97),
        ("study2", "none", 0, False, 0.4),
    ]
    rows = []
    for panel, arm, seed, fit, accuracy in runs:
        folder = RunFolder(out / f"{panel}-{arm}-seed{seed}")
        write_rows(folder.log_file, [{"split": "validation", "token_accuracy": accuracy, "nll": 1.0}])
        rows.append({"panel": panel, "arm": arm, "seed": seed, "fit": fit, "run": folder.name})
    return rows


def test_each_arm_that_fit_has_a_checkpoint_and_none_is_called_the_best(tmp_path, capsys, monkeypatch):
    """The arm that validates best is not the one that extrapolates best, so no checkpoint is called best without a word."""
    rows = a_sweep(tmp_path)
    found = {key: folder.name for key, folder in checkpoints(tmp_path, rows).items()}
    assert found == {
        ("study1", "learned"): "study1-learned-seed0",
        ("study1", "rope"): "study1-rope-seed0",
        ("study2", "rope"): "study2-rope-seed1",
    }
    monkeypatch.setattr("hf_posgen.report.markdown.summary_tables", lambda rows: "TABLES")
    paths = type("Paths", (), {"markdown": tmp_path / "report.md", "figures": []})
    print_outcome(tmp_path, rows, paths, [])
    printed = capsys.readouterr().out
    assert "of each arm that fit, the seed with the best validation" in printed and "best checkpoint" not in printed
    assert all(f"  {panel} {arm}" in printed for panel, arm in found) and "study2 none" not in printed
    assert f"from_pretrained('{(tmp_path / 'study1-learned-seed0').resolve()}'" in printed


def test_a_sweep_in_which_nothing_fit_offers_no_checkpoint(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("hf_posgen.report.markdown.summary_tables", lambda rows: "TABLES")
    paths = type("Paths", (), {"markdown": tmp_path / "report.md", "figures": []})
    print_outcome(tmp_path, [row | {"fit": False} for row in a_sweep(tmp_path)], paths, [])
    assert "from_pretrained" not in capsys.readouterr().out
