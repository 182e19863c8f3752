"""Results and metadata that others added to a repository survive a push."""

import json
from pathlib import Path

import pytest
import yaml

from hf_posgen.hub.errors import PushError
from tests.helpers.hub_helpers import REPO, send, titles


def others(hub, name: str) -> bytes:
    """The card that is there, with a result by somebody else."""
    from huggingface_hub import EvalResult, ModelCard

    card = ModelCard(hub.repo(REPO).files()["README.md"].decode())
    card.data.eval_results.append(EvalResult("text-generation", name, "Theirs", "accuracy", 0.5))
    return str(card).encode()


def measured(hub) -> list[str]:
    from huggingface_hub import ModelCard

    return [one.dataset_type for one in ModelCard(hub.repo(REPO).files()["README.md"].decode()).data.eval_results]


def test_results_that_others_added_survive_before_and_during_a_push(run, hub, waits):
    send(run, hub)
    ours = measured(hub)
    hub.repo(REPO).write("README.md", others(hub, "before/set"))
    hub.repo(REPO).write(".eval_results/theirs.yaml", b"- dataset: {id: a/b, task_id: c}\n  value: 1\n")
    send(run, hub)
    assert len(titles(hub)) == 4, "nothing of ours had changed"
    row = json.loads((run / "results.jsonl").read_text().splitlines()[0])
    (run / "results.jsonl").write_text(json.dumps(row) + "\n")
    hub.meddle("POST", "/commit/main", lambda: hub.repo(REPO).write("README.md", others(hub, "during/set")))
    send(run, hub)
    assert measured(hub) == [*ours, "before/set", "during/set"]
    assert ".eval_results/theirs.yaml" in hub.repo(REPO).files()


def test_a_card_there_that_cannot_be_read_is_not_overwritten(run, hub):
    hub.create(REPO).write("README.md", b"---\nmodel-index: [{name: x}]\n---\n")
    with pytest.raises(PushError, match=r"the metadata of the README.md that is there already can't be read"):
        send(run, hub)


def scored(run: Path, weights: bytes, splits: list[str], encoding: str) -> None:
    """Make another run of it: other weights, evaluated on some splits, called after an encoding."""
    first = json.loads((run / "results.jsonl").read_text().splitlines()[0])
    (run / "results.jsonl").write_text("".join(json.dumps(first | {"split": one}) + "\n" for one in splits))
    (run / "model.safetensors").write_bytes(weights)
    tree = yaml.safe_load((run / "run.yaml").read_text())
    tree["model"]["position_encoding"] = {"name": encoding}
    (run / "run.yaml").write_text(yaml.safe_dump(tree))


def test_other_weights_take_our_results_with_them_and_leave_those_of_others(run, hub):
    from huggingface_hub import ModelCard

    theirs = b"- dataset: {id: a/b, task_id: c}\n  value: 1\n"

    def ours():
        return sorted(path for path in hub.repo(REPO).files() if path.startswith(".eval_results/posgen-"))

    def told():
        return ModelCard(hub.repo(REPO).files()["README.md"].decode()).data

    scored(run, b"rope", ["test", "longer", "both"], "rope")
    send(run, hub)
    assert len(ours()) == 3 and "rope" in told().tags
    hub.repo(REPO).write("README.md", others(hub, "their/set"))
    hub.repo(REPO).write(".eval_results/theirs.yaml", theirs)
    mixed = ".eval_results/posgen-fixed-offset_last_k3_both.yaml"
    assert mixed in ours()
    hub.repo(REPO).write(mixed, hub.repo(REPO).files()[mixed] + theirs)
    scored(run, b"rope", ["test"], "rope")
    send(run, hub)
    assert len(ours()) == 3 and len(told().eval_results) == 4, (
        "of the same weights what was measured before still holds"
    )
    scored(run, b"alibi", ["test"], "alibi")
    send(run, hub)
    left = {one.dataset_type: one.dataset_split for one in told().eval_results}
    assert left == {"their/set": None, "tester/posgen-fixed-offset": "test"} and len(told().eval_results) == 2
    assert "alibi" in told().tags and "rope" not in told().tags
    assert ours() == [mixed, mixed.replace("both", "test")]
    assert b"a/b" in hub.repo(REPO).files()[mixed] and b"posgen" not in hub.repo(REPO).files()[mixed]
    assert hub.repo(REPO).files()[".eval_results/theirs.yaml"] == theirs
    before = len(titles(hub))
    send(run, hub)
    assert len(titles(hub)) == before
