"""Pushes against a Hub that fails, hangs up or loses its answers."""

import pytest

from hf_posgen.hub.errors import PushError
from tests.helpers.hub_helpers import REPO, published, send, titles
from tests.helpers.standin_hub import StandInHub

FAULTS = {
    "whoami answers 503": lambda hub, meddle: hub.fail("GET", "/whoami", 503),
    "looking for the repository, 500": lambda hub, meddle: hub.fail("GET", "/api/models/", 500),
    "creation takes effect, answer lost": lambda hub, meddle: hub.drop("POST", "/repos/create", "after"),
    "card's validation answers with a page": lambda hub, meddle: hub.fail("POST", "/validate-yaml", 502),
    "preupload hangs up": lambda hub, meddle: hub.drop("POST", "/preupload/"),
    "batch answers 504": lambda hub, meddle: hub.fail("POST", "/objects/batch", 504),
    "weights break off in the middle": lambda hub, meddle: hub.drop("PUT", "/lfs/", times=2),
    "weights arrive, answer lost": lambda hub, meddle: hub.drop("PUT", "/lfs/", "after"),
    "commit answers 500 twice": lambda hub, meddle: hub.fail("POST", "/commit/main", 500, times=2),
    "commit answers 429": lambda hub, meddle: hub.fail("POST", "/commit/main", 429, Retry_After=7),
    "commit hangs up": lambda hub, meddle: hub.drop("POST", "/commit/main"),
    "commit takes effect, answer lost": lambda hub, meddle: hub.drop("POST", "/commit/main", "after"),
    "tree hangs up": lambda hub, meddle: hub.drop("GET", "/tree/"),
    "branch is made, answer lost": lambda hub, meddle: hub.drop("POST", "/branch/", "after"),
    "checkpoint's commit is made, answer lost": lambda hub, meddle: hub.drop("POST", "/commit/step-000010", "after"),
    "somebody commits meanwhile": lambda hub, meddle: hub.meddle("POST", "/commit/main", meddle),
    "somebody commits meanwhile, twice": lambda hub, meddle: hub.meddle("POST", "/commit/main", meddle, times=2),
}


@pytest.fixture(scope="module")
def undisturbed(finished_run, tmp_path_factory):
    """{path: content} of main after a push that nothing disturbs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        quiet = StandInHub()
        send(published(finished_run, tmp_path_factory.mktemp("quiet")), quiet)
        quiet.close()
        return quiet.repo(REPO).files()


@pytest.mark.parametrize("name", FAULTS)
def test_a_passing_fault_leaves_no_trace(name, run, hub, waits, undisturbed):
    theirs = []

    def meddle():
        theirs.append(f"theirs-{len(theirs)}.txt")
        hub.repo(REPO).write(theirs[-1], b"x")

    FAULTS[name](hub, meddle)
    send(run, hub)
    assert waits and (name != "commit answers 429" or 7 in waits)
    repo = hub.repo(REPO)
    assert titles(hub)[0] == "Add rope-seed0" and titles(hub)[1:] == [f"write {path}" for path in theirs[::-1]] + [
        "initial commit"
    ]
    assert titles(hub, "step-000010") == ["Checkpoint after 10 steps", "initial commit"]
    assert {path: data for path, data in repo.files().items() if path not in theirs} == undisturbed


def test_a_push_that_gave_up_is_finished_by_the_next_one(run, hub, waits):
    hub.fail("POST", "/commit/main", 503, times=5)
    with pytest.raises(PushError, match=r"answered 503: try again later$"):
        send(run, hub)
    assert waits == [1, 2, 4, 8]
    assert titles(hub) == ["initial commit"]
    uploads = hub.count("PUT", "/lfs/")
    send(run, hub)
    assert titles(hub) == ["Add rope-seed0", "initial commit"]
    weights = {(run / "model.safetensors").read_bytes()}
    weights |= {path.read_bytes() for path in run.glob("state/*/model/model.safetensors")}
    assert uploads == 1 and hub.count("PUT", "/lfs/") == len(weights), "no object was sent twice"


def test_a_repository_that_never_holds_still_ends_in_one_sentence(run, hub, waits):
    hub.create(REPO)
    hub.meddle("POST", "/commit/main", lambda: hub.repo(REPO).write(f"{len(hub.requests)}", b""), times=99)
    with pytest.raises(PushError, match="keeps changing while it is pushed to"):
        send(run, hub)
