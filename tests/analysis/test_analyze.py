import json

import pytest

from hf_posgen.analysis import ANALYSES, analyze


@pytest.fixture(scope="module")
def results(finished_run):
    return analyze(finished_run, count=16)


def test_every_analysis_leaves_its_numbers_and_its_figure(finished_run, results):
    assert json.loads((finished_run / "analysis.json").read_text()) == results
    assert list(results) == list(ANALYSES)
    for name, result in results.items():
        assert "not_applicable" not in result, name
        assert (finished_run / "figures" / f"analysis_{name}.png").stat().st_size > 5000


def test_numbers_are_json_without_nan(results):
    json.dumps(results, allow_nan=False)


def test_a_part_keeps_the_rest(finished_run, results):
    assert analyze(finished_run, only=["equivariance"], count=16, figures=False).keys() == results.keys()


def test_an_unknown_name_is_refused_with_the_nearest(finished_run):
    with pytest.raises(ValueError, match="pinning"):
        analyze(finished_run, only=["pining"])


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        analyze(tmp_path)
