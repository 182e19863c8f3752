import json
from pathlib import Path

import pytest

from hf_posgen.common.files import read_rows
from hf_posgen.plotting import look
from hf_posgen.reproduce.study2 import claims
from hf_posgen.reproduce.study2 import figures as study2_figures
from hf_posgen.reproduce.study2 import run as study2
from hf_posgen.reproduce.study2.evaluated import grid_rows
from hf_posgen.reproduce.study2.streams import TOKENS, streams
from hf_posgen.reproduce.verdict_page import verdict_page
from hf_posgen.reproduce.verdicts import Verdict
from hf_posgen.sweep.spec import presets, read_sweep, sweep_runs
from tests.helpers.synthetic_rows import study2 as made_up

from .test_study2_claims import REACH, by_width, made, mixture

MORE = {  # arms that need more tokens to fit, as their presets say
    ("study2-a-small", "full"): ("none",),
    ("study2-a-small", "selective"): ("none", "alibi"),
}


def test_the_papers_presets_hold_what_it_states():
    for name in ("study2-a", "study2-b", "study2-c", "study2-c-separated"):
        for run in sweep_runs(read_sweep(name)):
            model, train, task = run.model, run.train, run.task
            assert (model["num_hidden_layers"], model["num_attention_heads"], model["hidden_size"]) == (8, 8, 512)
            assert model["hidden_act"] == "relu" and model["hidden_dropout"] == 0.1 and not model["tie_word_embeddings"]
            assert (train.learning_rate, train.warmup_steps, train.weight_decay, train.batch_size) == (
                3e-4,
                3000,
                0.05,
                64,
            )
            assert train.schedule == "constant" and train.steps == (80000 if run.panel == "mixed" else 40000)
            assert (task["window"], task["symbols"], task["copied"], task["skip"]) == (256, 128, 10, 18)
            assert task["unreachable"] == "scored" and not task["bos"] and max(task["test_distances"]) == 120


@pytest.mark.parametrize("name", [name for name in presets() if name.startswith("study2") and name.endswith("-small")])
def test_small_presets_are_fair_and_run_on_a_cpu(name):
    runs = sweep_runs(read_sweep(name))
    for panel in {run.panel for run in runs}:
        mine = [run for run in runs if run.panel == panel]
        alike = [run for run in mine if run.arm not in MORE.get((name, panel), ())]
        assert len({(run.train.steps, run.train.batch_size, str(run.task)) for run in alike}) == 1, "the same tokens"
        assert {run.seed for run in mine if run.arm == "rope"} == set(range(8)) and all(run.train.cpu for run in mine)
        asked = mine[0].task["test_distances"]
        trained = range(mine[0].task["d_min"], mine[0].task["d_max"] + 1)
        assert sorted({*asked, *trained}) == list(range(max(asked) + 1)), "no gap, or P means nothing"


def test_the_control_differs_in_rope_alone():
    """RoPE with as many tokens on selective copies as the model without encoding."""
    control = sweep_runs(read_sweep(str(Path(__file__).parents[2] / "docs" / "study2" / "rope_same_tokens.yaml")))
    none = next(
        run for run in sweep_runs(read_sweep("study2-a-small")) if (run.panel, run.arm) == ("selective", "none")
    )
    for run in control:
        assert (run.task, run.train, run.evaluation) == (none.task, none.train, none.evaluation)
        assert run.model["position_encoding"]["name"] == "rope"
        assert {k for k in run.model if run.model[k] != none.model[k]} == {"position_encoding"}


def test_names_that_are_not_there():
    with pytest.raises(ValueError, match="allowed: small, paper"):
        study2.sweep_of("a", "large")
    with pytest.raises(ValueError, match="part 'c' has no preset at scale 'small'; allowed: a, b, size"):
        study2.sweep_of("c", "small")


def facts(runs):
    for run in runs:
        for row in run.rows:
            row |= {"count": 1000, "bos": True}
    return runs


def test_figures_of_what_was_run(tmp_path, monkeypatch):
    monkeypatch.setattr(study2_figures, "grid_rows", lambda runs: made_up(1, distances=range(4, 12)))
    rows = [row | {"panel": "full", "kind": "full"} for row in made_up(3, unfit=(("none", 0),), distances=range(25))]
    runs = streams(rows, {}, "a")
    for high in (2, 4):
        runs += [
            run for arm in REACH for run in made(f"b range-{high}", arm, high, seeds=3, trained=(0, high), asked=16)
        ]
    runs += mixture("c", False, {}) + by_width(unfit=[(32, "none")])
    names = [path.name for path in study2_figures.figures(facts(runs), tmp_path)]
    drawn = ["delays", "diversity", "transfer", "size", "two_by_two"]
    assert names == [f"study2_{name}.png" for name in drawn] and all((tmp_path / name).is_file() for name in names)


def test_the_ratio_is_of_the_tokens_that_its_title_names():
    runs = [
        run for high in (2, 4) for run in made(f"b range-{high}", "alibi", high, seeds=3, trained=(0, high), asked=16)
    ]
    for run in runs:
        for row in run.rows:
            row["token_accuracy"] = row["first_accuracy"] / 2 if row["distance"] > run.trained[1] else 1.0
    with look():
        figure = study2_figures.diversity(facts(runs))
    drawn = [value for line in figure.axes[1].lines if line.get_marker() != "None" for value in line.get_ydata()]
    assert "all pasted tokens" in figure.axes[1].get_title(loc="left")
    for high in (2, 4):
        ratios = [run.far(TOKENS).ratio for run in runs if run.panel == f"b range-{high}"]
        assert any(abs(value - sum(ratios) / 3) < 1e-6 for value in drawn)


def test_nothing_run_draws_nothing(tmp_path):
    assert study2_figures.figures([], tmp_path) == []


def test_results_show_fit_sums_and_validity():
    text = study2.tables(made("a full", "none", 3, seeds=3) + made("a full", "rope", 1, seeds=3, fit=False))
    lines = [line for line in text.splitlines() if line.startswith("| a full")]
    none, rope, ratio = ([cell.strip() for cell in line.split("|")] for line in lines)
    assert "3 of 3" in none and "0 of 3" in rope and any(cell.startswith("seed 2") for cell in none)
    assert ratio[2] == "none" and all(map(float, ratio[-3:-1])), "P stands beside its two nulls"


def test_what_was_not_measured_takes_no_room():
    nothing = {"pairs": 0, "difference": None, "low": None, "high": None}
    contrast = {"pairs": 8, "difference": 1.4384, "low": 0.9, "high": 2.0, "p": 0.02, "underpowered": False}
    numbers = {"C": {"none > rope": contrast, "arms": {}}, "S": {"none > rope": nothing, "arms": {}}}
    page = verdict_page("t", "how", [Verdict("2.A", "statement", "below", "partly reproduced", "reason", numbers)], [])
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")][
        -3:
    ]
    assert table[0] == ["", "pairs of seeds", "mean difference", "p", "too few pairs to test"]
    assert table[2] == ["none > rope", "8", "1.44 [0.9, 2]", "0.02", "no"]
    assert "C:" in page and "S:" not in page and "arms" not in page and "{" not in page
    bare = verdict_page(
        "t", "how", [Verdict("2.B", "statement", "below", "not judged", "not run", {"slope": nothing})], []
    )
    assert bare.count("|") == 15 and "Nothing was measured." in bare


def test_every_number_of_every_verdict_is_in_a_table():
    runs = made("a full", "none", 8) + made("a full", "rope", 1) + made("a selective", "none", 8) + by_width()
    verdicts = claims.judge(runs)
    page = verdict_page("t", "how", verdicts, [])
    assert "{" not in page and "null" not in page
    arms = next(verdict for verdict in verdicts if verdict.claim == "2.A").numbers["C"]["arms"]
    assert f"{arms['none']['token_accuracy']['P_of_2gram_baseline']:.3g}" in page
    assert "P_of_2gram_baseline" not in arms["none"]["first_accuracy"], "it is counted over all pasted tokens"


@pytest.fixture
def short(monkeypatch):
    """The study with a few steps, two seeds, small models and short windows."""
    read = read_sweep

    def tiny(name):
        tree = read(name)
        for part in tree["panels"].values():
            base = part["base"] = {**part["base"], "train": {"steps": 2, "batch_size": 4, "cpu": True}}
            base["model"] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
            base["evaluation"] = {"splits": ["test", "farther"], "count": 8}
            part["seeds"] = [0, 1]
        if name == "study2-c":
            task = {"name": "delay_copy", "window": 48, "kinds": "CS", "asked": "C", "s_min": 8, "s_max": 10}
            tree["panels"]["mixed"]["base"]["task"] = task | {"d_max": 6, "test_distances": "7-14"}
            for name, kind in (("full", "C"), ("selective", "S")):
                tree["panels"][name]["base"]["task"] = {"name": "delay_copy", "window": 48, "kinds": kind}
        return tree

    monkeypatch.setattr(study2, "read_sweep", tiny)


@pytest.mark.slow
def test_from_training_to_verdicts_and_on_again(short, tmp_path):
    out = tmp_path / "study2"
    verdicts = study2.reproduce(out, seeds=1, workers=2, quiet=True)
    assert {verdict.verdict for verdict in verdicts} == {"not judged"}
    claims = [one["claim"] for one in json.loads((out / "verdicts.json").read_text())["verdicts"]]
    assert claims == ["2.A", "2.A′", "2.B", "2.C", "2.C′", "2 size", "2 seeds", "50→101"]
    assert "0 of 1" in (out / "results.md").read_text() and (out / "figures" / "study2_delays.png").is_file()
    weights = next((out / "a").glob("full-rope-*/model.safetensors"))
    before = weights.stat().st_mtime_ns
    study2.reproduce(out, seeds=1, workers=2, quiet=True)
    assert weights.stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_mixture_is_asked_both_kinds_from_the_same_weights(short, tmp_path):
    verdicts = study2.reproduce(tmp_path, scale="paper", parts=["c"], arms=["rope"], workers=2, quiet=True)
    (found,) = (verdict for verdict in verdicts if verdict.claim == "2.C")
    assert "models of" in found.reason
    (folder, _) = sorted((tmp_path / "c").glob("mixed-rope-*/"))
    rows = read_rows(folder / "selective.jsonl")
    assert {row["kind"] for row in rows} == {"selective"} and {row["arm"] for row in rows} == {"rope"}
    assert rows[0]["train_distance"] == [8, 10] and max(row["distance"] for row in rows) == 14


@pytest.mark.slow
def test_the_grid_asks_longer_windows_and_farther_delays(short, tmp_path):
    study2.reproduce(tmp_path, seeds=1, panels=["full"], arms=["rope"], workers=1, quiet=True)
    rows = read_rows(tmp_path / "a" / "results.jsonl")
    runs = streams([row | {"fit": True} for row in rows], {rows[0]["run"]: tmp_path / "a" / rows[0]["run"]}, "a")
    asked = grid_rows(runs)
    assert {row["length"] for row in asked} == {64, 96, 128, 256}
    assert {row["split"] for row in asked} == {"test", "farther", "nearer", "longer", "both"}
    assert {row["count"] for row in asked} == {200}
