"""Merging a card and its result files with what a repository holds already."""

from dataclasses import replace

import pytest
import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData, parse_eval_result_entries

from hf_posgen.card.metadata import (
    eval_files,
    summarize,
)
from hf_posgen.card.model_card import render
from hf_posgen.hub.merge_model_card import merge_card, merge_entries
from tests.helpers.card_rows import COPY, FIXED, MODEL, REPO, paste_row, row


def theirs(**more) -> str:
    result = EvalResult("text-generation", "other/set", "Other", "accuracy", 0.5, dataset_split="test")
    same = EvalResult(
        **{"task_type": "text-generation", "dataset_type": "lab/posgen-fixed-offset", "dataset_config": "last_k3"},
        **{"dataset_name": "x", "dataset_split": "test", "metric_type": "exact_match", "metric_name": "exact match"},
        metric_value=0.123,
    )
    data = ModelCardData(model_name="old", eval_results=[result, same], tags=["mine"], license="mit", **more)
    return str(ModelCard.from_template(data, template_str="---\n{{ card_data }}\n---\n\nold text\n"))


def found(text: str) -> dict:
    return {
        (one.dataset_type, one.dataset_split, one.metric_name): one.metric_value
        for one in ModelCard(text).data.eval_results
    }


def test_results_merge_by_what_they_measure(folder):
    ours = render(folder([row("test", 4), row("longer", 32, value=0.25)]), REPO)["README.md"]
    merged = merge_card(ours, theirs(base_model="a/b"))
    assert found(merged) == {
        ("other/set", "test", None): 0.5,
        ("lab/posgen-fixed-offset", "test", "exact match"): 0.9,
        ("lab/posgen-fixed-offset", "longer", "exact match"): 0.25,
    }
    data = ModelCard(merged).data
    assert data.tags[0] == "hf_posgen" and "mine" in data.tags and data.base_model == "a/b" and data.license == "mit"
    assert data.model_name == "posgen-rope" and data.datasets == ["lab/posgen-fixed-offset"]
    assert "old text" not in merged and "## Limits" in merged


@pytest.mark.parametrize(
    "other",
    [
        {"task_type": "other-task"},
        {"dataset_type": "other/set"},
        {"dataset_config": "last_k7"},
        {"dataset_split": "longer"},
        {"dataset_revision": "v2"},
        {"metric_type": "accuracy"},
        {"metric_name": "theirs"},
    ],
    ids=str,
)
def test_what_makes_two_results_different(other, folder):
    """Task, data set, configuration, split, revision and metric, each by itself."""
    ours = render(folder([row("test", 4)]), REPO)["README.md"]
    card = ModelCard(ours)
    (result,) = card.data.eval_results
    card.data.eval_results = [replace(result, **other, metric_value=0.5)]
    assert sorted(one.metric_value for one in ModelCard(merge_card(ours, str(card))).data.eval_results) == [0.5, 0.9]
    card.data.eval_results = [replace(result, dataset_name="renamed", metric_value=0.5)]
    assert [one.metric_value for one in ModelCard(merge_card(ours, str(card))).data.eval_results] == [0.9]


@pytest.mark.parametrize("rows", [[], [row("test", 4)]])
def test_merging_again_changes_nothing(rows, folder):
    run = folder(rows)
    (run / "model.safetensors").write_bytes(b"weights")
    ours = render(run, REPO)["README.md"]
    assert merge_card(ours, ours) == ours
    once = merge_card(ours, theirs())
    assert merge_card(ours, once) == once


def test_a_card_without_metadata_is_replaced_and_a_broken_one_refused(folder):
    ours = render(folder([row("test", 4)]), REPO)["README.md"]
    assert merge_card(ours, "# just text\n") == ours
    for broken in ("---\na: [\n---\n", "---\nmodel-index: [{name: x}]\n---\n", "---\n- a\n---\n"):
        with pytest.raises(ValueError, match="metadata of the README.md that is there already can't be read"):
            merge_card(ours, broken)


def test_what_we_wrote_of_other_weights_goes_and_what_others_wrote_stays(folder):
    """Results, tags, data sets and metrics of ours; of the same weights they stay, whatever was evaluated this time."""
    run = folder([row("test", 4), row("longer", 32)])
    (run / "model.safetensors").write_bytes(b"old")
    old = ModelCard(render(run, REPO)["README.md"])
    old.data.eval_results.append(EvalResult("text-generation", "other/set", "Other", "accuracy", 0.5))
    old.data.tags, old.data.datasets = [*old.data.tags, "mine"], [*old.data.datasets, "other/set"]
    again = folder([row("test", 4, value=0.5)])
    assert set(found(merge_card(render(again, REPO)["README.md"], str(old)))) == {
        *(("lab/posgen-fixed-offset", split, "exact match") for split in ("test", "longer")),
        ("other/set", None, None),
    }
    (run / "model.safetensors").write_bytes(b"new")
    new = folder([paste_row("test", 20)], COPY, MODEL | {"position_encoding": {"name": "alibi", "slopes": "paper"}})
    for text, ours in ((render(new, REPO)["README.md"], 4), (render(new, REPO, step=5)["README.md"], 0)):
        merged = merge_card(text, str(old))
        assert [one.dataset_type for one in ModelCard(merged).data.eval_results].count("lab/posgen-delay-copy") == ours
        assert ("other/set", None, None) in found(merged) and len(ModelCard(merged).data.eval_results) == ours + 1
        data = ModelCard(merged).data
        assert "mine" in data.tags and "alibi" in data.tags and not {"rope", "fixed_offset"} & set(data.tags)
        assert data.datasets == ["lab/posgen-delay-copy", "other/set"]
        assert merge_card(text, merged) == merged


def test_entries_merge_by_data_set_task_and_revision():
    def entry(task, value):
        return f"- dataset: {{id: a/b, task_id: {task}}}\n  value: {value}\n"

    merged = parse_eval_result_entries(yaml.safe_load(merge_entries(entry("x", 1), entry("x", 0) + entry("y", 2), "w")))
    assert [(one.task_id, one.value) for one in merged] == [("x", 1), ("y", 2)]


def test_entries_of_other_weights_go_and_a_file_without_entries_with_them():
    weights = [f"sha256:{digit * 12}" for digit in "01"]
    ours = [eval_files(summarize([row("test", 4)]), FIXED, "lab", one) for one in weights]
    (path,), (old,), (new,) = ours[0], ours[0].values(), ours[1].values()
    theirs = "- dataset: {id: a/b, task_id: c}\n  value: 1\n"
    assert path.endswith("last_k3_test.yaml") and weights[0] in old
    assert merge_entries(None, old, weights[1]) is None and merge_entries(None, old, weights[0]) == old
    assert merge_entries(new, old, weights[1]) == new
    assert merge_entries(None, theirs, weights[1]) == theirs, "not ours: not even read"
    (left,) = parse_eval_result_entries(yaml.safe_load(merge_entries(None, old + theirs, weights[1])))
    assert left.dataset_id == "a/b"
    with pytest.raises(ValueError, match="a file of .eval_results that is there already can't be read"):
        merge_entries(None, f"[ weights {weights[0]}", weights[1])
