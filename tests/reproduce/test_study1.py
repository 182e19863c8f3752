import json

import pytest

from hf_posgen.reproduce.study1 import run as study1
from hf_posgen.reproduce.study1.handmade_table import accuracy_by_length
from hf_posgen.sweep.spec import read_sweep, sweep_runs


def test_a_learned_table_could_extrapolate():
    """Built by hand, it answers at three and at sixteen times the trained length."""
    accuracy = accuracy_by_length(lengths=(16, 17, 48, 256), count=50)
    assert min(accuracy.values()) == 1.0


def test_the_preset_builds_and_has_ten_seeds_of_each_arm_that_is_judged():
    tree = read_sweep("study1")
    seeds = {name: 3 if name == "anchor" else 10 for name in tree["panels"]}
    assert len(sweep_runs(tree)) == sum(seeds[name] * len(part["arms"]) for name, part in tree["panels"].items())


def test_full_sequence_runs_are_judged_on_their_last_position(tmp_path):
    tree = read_sweep("study1")
    tree["panels"] = study1.part_of(tree["panels"], 1, ["multilayer"], ["rope"])
    base = tree["panels"]["multilayer"]["base"]
    base["train"] |= {"steps": 2, "batch_size": 4}
    base["evaluation"]["count"] = 8
    rows = study1.trained(tree, tmp_path, 1, True)
    last = study1.evaluated_at_the_end(rows, tmp_path)
    assert len(last) == len([row for row in rows if row["split"] != "validation"])
    assert {(row["panel"], row["arm"], row["fit"]) for row in last} == {("multilayer", "rope", False)}
    wide = [row for row in last if row["length"] == 48]
    assert [row["count"] for row in wide] == [8] and wide[0]["exact_match"] in [n / 8 for n in range(9)]
    assert [row["exact_match"] for row in rows if row["length"] == 48][0] not in [n / 8 for n in range(1, 9)]


def test_a_part_of_the_study():
    tree = study1.part_of(read_sweep("study1")["panels"], 2, ["offset1", "offset3"], ["rope"])
    assert {name: (list(part["arms"]), part["seeds"]) for name, part in tree.items()} == {
        "offset3": (["rope"], [0, 1]),
        "offset1": (["rope"], [0, 1]),
    }
    with pytest.raises(ValueError, match="unknown arm 'ropes'"):
        study1.part_of(read_sweep("study1")["panels"], 2, None, ["ropes"])


@pytest.fixture
def short(monkeypatch):
    """The study with a few steps, short sequences and three arms."""
    tree = read_sweep("study1")
    keep = {"offset3": ["rope", "learned"], "linear": ["rope-linear"], "multilayer": ["rope"]}
    tree["panels"] = {name: tree["panels"][name] for name in keep}
    for name, part in tree["panels"].items():
        part["arms"] = {arm: part["arms"][arm] for arm in keep[name]}
        part["base"]["train"] |= {"steps": 2, "batch_size": 4}
        part["base"]["task"] |= {"test_lengths": [17, 48]}
        part["base"]["evaluation"] = {"splits": ["test", "longer"], "count": 8}
    monkeypatch.setattr(study1, "read_sweep", lambda name: tree)


@pytest.mark.slow
def test_from_training_to_verdicts_and_on_again(short, tmp_path):
    verdicts = study1.reproduce(tmp_path / "study1", seeds=1, workers=2, quiet=True)
    assert {verdict.verdict for verdict in verdicts} == {"not judged"}
    content = json.loads((tmp_path / "study1" / "verdicts.json").read_text())
    assert [one["claim"] for one in content["verdicts"]] == ["1.1", "1.2", "1.3", "1.4a", "1.4b", "1.5", "1.6", "1.7"]
    text = (tmp_path / "study1" / "results.md").read_text()
    assert "rope-linear" in text and "0 of 1" in text
    assert (tmp_path / "study1" / "figures" / "study1_curves.png").is_file()
    weights = next((tmp_path / "study1").glob("offset3-rope-*/model.safetensors"))
    before = weights.stat().st_mtime_ns
    study1.reproduce(tmp_path / "study1", seeds=1, workers=2, quiet=True)
    assert weights.stat().st_mtime_ns == before
