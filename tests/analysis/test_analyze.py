import inspect
import json
import math
import re
import shutil
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hf_posgen.analysis import ANALYSES, analyze, describe, register_analysis, registry
from hf_posgen.analysis.terminal import printed
from hf_posgen.cli import main
from hf_posgen.plotting import look


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


def test_results_of_other_weights_are_not_kept(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    options = {"count": 16, "figures": False}
    assert set(analyze(folder, only=["effective_rank", "equivariance"], **options)) >= {
        "effective_rank",
        "equivariance",
    }
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.0.self_attn.q_proj.weight"] *= 2
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert set(analyze(folder, only=["equivariance"], **options)) == {"equivariance"}


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


def test_what_is_printed_is_defined(results):
    """Every name of a number that a terminal shows stands in the docstring of its analysis."""
    for name, result in results.items():
        definition = inspect.getdoc(registry.find_analysis(name))
        assert registry.summary(name) and "\n" in definition
        for numbers in (result, *result.get("heads", [])[:1]):
            for keys in printed(numbers).values():
                undefined = [key for key in keys if not re.search(rf"\b{re.escape(key)}\b", definition)]
                assert not undefined, (name, undefined)


def test_every_run_of_a_sweep(run, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(run, tmp_path / name)
    (tmp_path / "unfinished").mkdir()
    shutil.copy(run / "run.yaml", tmp_path / "unfinished")
    with pytest.warns(UserWarning, match="left out: unfinished"):
        results = analyze(tmp_path, only=["effective_rank"], figures=False)
    assert list(results) == ["a", "b"]
    for name, measured in results.items():
        assert json.loads((tmp_path / name / "analysis.json").read_text()) == measured


def test_a_posgen_model_without_its_run(run, tmp_path):
    for file in ("config.json", "model.safetensors"):
        shutil.copy(run / file, tmp_path)
    results = analyze(tmp_path, count=16)
    applicable = [name for name, result in results.items() if "not_applicable" not in result]
    assert applicable == ["effective_rank"]
    assert all("without a run" in results[name]["not_applicable"] for name in results if name not in applicable)


def test_a_model_of_another_kind_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(ValueError, match="model of type 'llama'.*posgen convert"):
        analyze(tmp_path)


def test_a_hub_name_is_no_folder():
    with pytest.raises(ValueError, match="owner/name is no folder"):
        analyze("owner/name")


def test_weights_that_are_no_numbers_are_refused(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    weights = load_file(folder / "model.safetensors")
    name = next(iter(weights))
    weights[name].view(-1)[0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="NaN"):
        analyze(folder)


class Odd:
    """Numbers that JSON has none for.

    - infinite: what can't be.
    """

    @staticmethod
    def measure(context):
        return {"infinite": math.inf, "inside": {"nan": np.float64("nan"), "tensor": torch.ones(2)}}

    @staticmethod
    def figure(result):
        raise RuntimeError("no picture")


def test_a_fault_in_a_figure_loses_no_numbers(run):
    register_analysis("odd", Odd)
    try:
        with pytest.raises(RuntimeError, match="no picture"):
            analyze(run, only=["odd"])
    finally:
        del ANALYSES["odd"]
    kept = json.loads((run / "analysis.json").read_text(), parse_constant=pytest.fail)
    assert kept["odd"]["infinite"] is None and kept["odd"]["inside"] == {"nan": None, "tensor": [1.0, 1.0]}


def test_a_users_module_brings_an_analysis(run, tmp_path, monkeypatch):
    (tmp_path / "my_sizes.py").write_text(
        "from hf_posgen import register_analysis\n\n\n"
        "class Layers:\n    '''How many layers there are.'''\n\n"
        "    def measure(self, context):\n        return {'layers': len(context.model.model.layers)}\n\n\n"
        "register_analysis('layers', Layers)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    try:
        assert analyze(run, only=["layers"], imports=["my_sizes"])["layers"]["layers"] == 1
        main(["analyze", str(run), "--only", "layers", "--imports", "my_sizes"])
    finally:
        ANALYSES.pop("layers", None)
        sys.modules.pop("my_sizes", None)


@pytest.mark.parametrize("name", ANALYSES)
def test_no_legend_hides_data(results, name):
    with look():
        figure = registry.find_analysis(name).figure(results[name])
        figure.draw_without_rendering()
    for ax in figure.axes:
        if (legend := ax.get_legend()) is not None:
            inside, around = legend.get_window_extent(), ax.get_window_extent()
            assert inside.y1 <= around.y0 or inside.x0 >= around.x1
