"""Sweep files: what they mean, and what is refused."""

import pytest
import yaml

from hf_posgen.run.build import run_hash
from hf_posgen.sweep.spec import parse_sweep, presets, read_sweep, sweep_runs
from hf_posgen.sweep.trial import Trial

from .helpers import BASE, small_sweep


def test_points_are_arms_times_seeds_and_named_by_content(tmp_path):
    runs = sweep_runs(small_sweep())
    assert [(run.arm, run.seed, run.panel) for run in runs] == [
        ("rope", 0, "study"),
        ("rope", 1, "study"),
        ("none", 0, "study"),
        ("none", 1, "study"),
    ]
    names = [Trial(run, tmp_path).name for run in runs]
    assert len(set(names)) == 4 and names[0].startswith("study-rope-seed0-")
    longer = sweep_runs(small_sweep(base=BASE | {"train": BASE["train"] | {"steps": 13}}))
    assert Trial(longer[0], tmp_path).name != names[0]


def test_declared_contrasts_are_checked_and_make_no_other_runs():
    declared = small_sweep() | {"contrasts": [["rope", "none"]]}
    assert [run_hash(run) for run in sweep_runs(declared)] == [run_hash(run) for run in sweep_runs(small_sweep())]
    for pairs, said in (
        ([["rope", "nnoe"]], "unknown arm 'nnoe' .did you mean 'none'"),
        ([["rope", "rope"]], r"contrast \['rope', 'rope'\] names no two arms"),
        ([["rope", "none"], ["none", "rope"]], "declared twice"),
        (["rope"], "contrast 'rope' names no two arms"),
        (None, "contrast None names no two arms"),
    ):
        with pytest.raises(ValueError, match=said):
            sweep_runs(small_sweep() | {"contrasts": pairs})
    (part,) = small_sweep()["panels"].values()
    apart = {"panels": {arm: part | {"arms": {arm: part["arms"][arm]}} for arm in ("rope", "none")}}
    with pytest.raises(ValueError, match="contrast rope:none: no panel of the sweep holds both arms"):
        sweep_runs(apart | {"contrasts": [["rope", "none"]]})


def test_a_grid_names_its_arms():
    tree = small_sweep(
        arms=None,
        grid={
            "model.position_encoding": ["rope", {"name": "alibi", "slopes": "learned"}],
            "model.hidden_size": [16, 32],
        },
    )
    assert list(parse_sweep(tree).panels[0].arms) == [
        "rope-hidden_size=16",
        "rope-hidden_size=32",
        "alibi-slopes=learned-hidden_size=16",
        "alibi-slopes=learned-hidden_size=32",
    ]
    assert {run.model["hidden_size"] for run in sweep_runs(tree)} == {16, 32}


def test_every_preset_is_a_valid_sweep():
    for name in presets():
        assert sweep_runs(read_sweep(name))


def yaml_sweep(text: str) -> dict:
    """A sweep of the given panel, as YAML reads it."""
    return yaml.safe_load(f"panels:\n  study:\n    {text}\n") | {}


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ("arms: {on: {}, none: {}}", 'arm True is no text: .*put quotes around it, such as "on"'),
        ("arms: {no: {}}", "arm False is no text"),
        ("arms: {64: {}}", 'arm 64 is no text: .* such as "64"'),
        ("arms: {~: {}}", "arm None is no text"),
        ("arms: {'': {}}", "arm '' is no text"),
        ("arms: [rope, none]", r"panels.study.arms is \['rope', 'none'\]; it must be a mapping of names"),
        ("arms: {rope: rope}", r"panels.study.arms.rope is 'rope'; it must be a mapping of a run's keys"),
        ("{base: rope, arms: {rope: {}}}", "panels.study.base is 'rope'; it must be a mapping"),
        ("grid: {model.hidden_size: 32}", "panels.study.grid.model.hidden_size is 32; it must be a list of values"),
        ("grid: {model.hidden_size: []}", r"grid.model.hidden_size is \[\]; it must be a list of values"),
        ("grid: [model.hidden_size]", "panels.study.grid is .* it must map dotted keys"),
        ("grid: {model.hidden_size: [32, 32]}", "grid.model.hidden_size lists 'hidden_size=32' twice"),
        ("grid: {train.learning_rate: [1e-3, 0.001]}", "lists 'learning_rate=0.001' twice"),
        ("{arms: {a-b: {}, a: {}}, grid: {model.position_encoding: [rope]}, seeds: [0, 0]}", "seeds lists 0 twice"),
        ("{arms: {a: {}}, seeds: [0, 1, 0]}", "panels.study.seeds lists 0 twice"),
        ("{arms: {a: {}}, seeds: [true]}", r"panels.study.seeds is \[True\]"),
        ("{arms: {a: {}}, seeds: [-1]}", r"panels.study.seeds is \[-1\]; it must be .* at least 0"),
        ("{arms: {a: {}}, learning_rates: [1e-3, 1.0e-3], selection_seeds: [7]}", "learning_rates lists 0.001 twice"),
        ("{arms: {a: {}}, learning_rates: [1e-3], selection_seeds: [7, 7]}", "selection_seeds lists 7 twice"),
        ("{arms: {a: {}}, learning_rates: 1e-3, selection_seeds: [7]}", "learning_rates is '1e-3'; it must be a list"),
        ("{arms: {a: {seed: 3}}}", "panels.study.arms.a.seed: a sweep sets this itself; say it under 'seeds'"),
        ("{arms: {a: {}}, base: {arm: x}}", "panels.study.base.arm: a sweep sets this itself; say it under 'arms'"),
        ("grid: {seed: [0, 1]}", "panels.study.grid.seed: a sweep sets this itself"),
    ],
)
def test_what_a_sweep_file_cannot_say_is_refused_in_a_sentence(panel, message):
    """The kind: a value that YAML reads as something else, or that would be dropped for another, without a word."""
    with pytest.raises(ValueError, match=message):
        parse_sweep(yaml_sweep(panel))


def test_names_of_panels_and_of_the_sweep_are_text():
    with pytest.raises(ValueError, match="panel True is no text"):
        parse_sweep(yaml.safe_load("panels: {on: {arms: {a: {}}}}"))
    with pytest.raises(ValueError, match="the name of the sweep 2026 is no text"):
        parse_sweep(yaml.safe_load("{name: 2026, panels: {p: {arms: {a: {}}}}}"))
    assert parse_sweep(yaml.safe_load("panels: {'on': {arms: {'64': {}}}}")).panels[0].arms == {"64": {}}


def test_arms_that_would_share_a_name_are_refused():
    tree = yaml_sweep("{arms: {a: {}, a-hidden_size=32: {}}, grid: {model.hidden_size: [32]}}")
    assert len(parse_sweep(tree).panels[0].arms) == 2
    with pytest.raises(ValueError, match="two arms of panels.study are called 'x-rope-alibi'"):
        grid = {"model.position_encoding": ["rope-alibi", "alibi"]}
        parse_sweep({"panels": {"study": {"arms": {"x": {}, "x-rope": {}}, "grid": grid}}})


def test_a_grid_over_numbers_names_key_and_value_however_they_are_written():
    """YAML reads 1e-3 as text and 1.0e-3 as a number: one arm, one name, one run."""
    named = [
        parse_sweep(yaml_sweep(f"grid: {{train.learning_rate: [{rate}]}}")).panels[0].arms
        for rate in ("1e-3", "1.0e-3", "0.001")
    ]
    assert [list(arms) for arms in named] == [["learning_rate=0.001"]] * 3
    grid = {
        "model.norm": ["rmsnorm"],
        "model.tie_word_embeddings": [True],
        "model.position_encoding": [["rope", "none"]],
    }
    (panel,) = parse_sweep({"panels": {"study": {"grid": grid}}}).panels
    assert list(panel.arms) == ["norm=rmsnorm-tie_word_embeddings=true-rope+none"]
    runs = sweep_runs(small_sweep(arms=None, grid={"train.learning_rate": ["1e-3"]}, seeds=[0]))
    assert [(run.arm, run.train.learning_rate) for run in runs] == [("learning_rate=0.001", 0.001)]


OWN_ENCODING = '''
from hf_posgen import PositionEncoding, register


class Idle{number}(PositionEncoding):
    """Does nothing."""


register("idle{number}", Idle{number})
'''


def test_a_sweep_imports_modules_for_all_its_runs(tmp_path, monkeypatch):
    """Said once for the sweep, or in the base of a panel as in a run."""
    monkeypatch.chdir(tmp_path)
    for number in (7, 8):
        (tmp_path / f"idle{number}.py").write_text(OWN_ENCODING.format(number=number))
    arms = {"own": {"model": {"position_encoding": "idle7"}}}
    (run,) = sweep_runs(small_sweep(arms=arms, seeds=[0]) | {"imports": ["idle7"]})
    assert list(run.imports) == ["idle7"] and run.model["position_encoding"]["name"] == "idle7"
    arms = {"own": {"model": {"position_encoding": "idle8"}}}
    (run,) = sweep_runs(small_sweep(arms=arms, seeds=[0], base=BASE | {"imports": ["idle8"]}) | {"imports": ["idle7"]})
    assert set(run.imports) == {"idle7", "idle8"}
