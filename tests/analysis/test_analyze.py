import json
import shutil

import pytest

from hf_posgen.analysis import ANALYSES, analyze, describe, register_analysis


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


def test_a_terminal_shows_the_plain_numbers(results):
    lines = describe(results).splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == list(ANALYSES)
    head = results["carrier_kernel"]["heads"][0]
    assert any(f"peak {head['peak']}, margin {head['margin']:.3g}" in line for line in lines)
    assert "  equivariant yes" in lines and max(map(len, lines)) < 300, "no lists"
    assert "  not applicable: why" in describe({"pinning": {"not_applicable": "why"}})


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


class Sizes:
    """How many weights there are.

    - weights: their number.
    """

    @staticmethod
    def measure(context):
        return {"weights": sum(parameter.numel() for parameter in context.model.parameters())}


@pytest.fixture
def registered():
    register_analysis("sizes", Sizes)
    yield
    del ANALYSES["sizes"]


def test_an_analysis_of_ones_own_without_a_figure(registered, run):
    results = analyze(run, only=["sizes"], count=16)
    assert results["sizes"]["weights"] > 1000
    assert f"sizes: How many weights there are\n  weights {results['sizes']['weights']:.3g}" in describe(results)


def test_a_name_belongs_to_one_analysis(registered):
    register_analysis("sizes", Sizes)
    with pytest.raises(ValueError, match="'pinning' is taken by hf_posgen.analysis.pinning"):
        register_analysis("pinning", Sizes)
    with pytest.raises(ValueError, match="no function measure"):
        register_analysis("other", json)
