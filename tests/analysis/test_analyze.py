import json
import shutil

import pytest

from hf_posgen.analysis import ANALYSES, analyze, told


@pytest.fixture(scope="module")
def run(finished_run, tmp_path_factory):
    """A copy: analyses write into the folder."""
    return shutil.copytree(finished_run, tmp_path_factory.mktemp("analyzed") / finished_run.name)


@pytest.fixture(scope="module")
def results(run):
    return analyze(run, count=16)


def test_every_analysis_leaves_its_numbers_and_its_figure(run, results):
    assert json.loads((run / "analysis.json").read_text()) == results
    assert list(results) == list(ANALYSES)
    for name, result in results.items():
        assert "not_applicable" not in result, name
        assert (run / "figures" / f"analysis_{name}.png").stat().st_size > 5000


def test_a_terminal_is_told_the_plain_numbers(results):
    lines = told(results).splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == list(ANALYSES)
    head = results["carrier_kernel"]["heads"][0]
    assert any(f"peak {head['peak']}, margin {head['margin']:.3g}" in line for line in lines)
    assert "  equivariant yes" in lines and max(map(len, lines)) < 300, "no lists"
    assert "  not here: why" in told({"pinning": {"not_applicable": "why"}})


def test_numbers_are_json_without_nan(results):
    json.dumps(results, allow_nan=False)


def test_a_part_keeps_the_rest(run, results):
    assert analyze(run, only=["equivariance"], count=16, figures=False).keys() == results.keys()


def test_an_unknown_name_is_refused_with_the_nearest(run):
    with pytest.raises(ValueError, match="pinning"):
        analyze(run, only=["pining"])


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        analyze(tmp_path)
