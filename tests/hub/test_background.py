"""Copies that hold still, and publishing while training goes on."""

import shutil
from functools import partial

import pytest

from hf_posgen.hub import files as hub_files
from hf_posgen.hub.background import BackgroundPush
from hf_posgen.hub.errors import PushError
from hf_posgen.hub.files import freeze, run_files
from tests.helpers.hub_helpers import REPO, python, titles
from tests.helpers.standin_hub import READ, WRITE


def test_a_frozen_copy_holds_still_and_a_restless_folder_is_refused(run, tmp_path, monkeypatch):
    frozen, old = freeze(run, tmp_path / "frozen", run_files), (run / "run.yaml").read_bytes()
    with (run / "run.yaml").open("r+b") as file:  # in place, as a careless writer would
        file.write(b"####")
    assert (frozen / "run.yaml").read_bytes() == old
    plain = shutil.copy2

    def restless(source, target):
        plain(source, target)
        with (run / "train.jsonl").open("a") as log:
            log.write("{}\n")

    monkeypatch.setattr(hub_files.shutil, "copy2", restless)
    with pytest.raises(PushError, match="is being written to"):
        freeze(run, tmp_path / "again", run_files)


def test_the_background_sends_what_was_there_when_it_was_asked(run, hub):
    weights = run / "state" / "step-000010" / "model" / "model.safetensors"
    expected = weights.read_bytes()
    with BackgroundPush(REPO, private=True, token=WRITE, endpoint=hub.endpoint) as background:
        hub.meddle("POST", "/preupload", lambda: shutil.rmtree(run / "state", ignore_errors=True))
        background.checkpoint(weights.parent, "step-000010")
        weights.write_bytes(b"overwritten while the upload runs")
        background.run(run)
    repo = hub.repo(REPO)
    assert repo.private and repo.files("step-000010")["model.safetensors"] == expected
    assert titles(hub) == ["Add rope-seed0", "initial commit"]
    with pytest.raises(ValueError, match=r"step-000007.model is no state of a run: there is no .*model.safetensors"):
        background.checkpoint(run / "state" / "step-000007" / "model", "step-000007")
    with pytest.raises(ValueError, match="'best' names no state"):
        background.checkpoint(weights.parent, "best")


def test_the_background_tells_what_went_wrong_and_goes_on(run, hub, caplog, waits):
    hub.fail("POST", "/commit/step-000010", 503, times=5)
    background = BackgroundPush(REPO, token=WRITE, endpoint=hub.endpoint)
    background.checkpoint(run / "state" / "step-000010" / "model", "step-000010")
    background.run(run)
    with pytest.raises(PushError, match="answered 503"):
        background.wait()
    background.wait()
    assert "was not published" in caplog.text and titles(hub)[0] == "Add rope-seed0"


@pytest.mark.parametrize(
    "how, error, sentence",
    [
        ({"token": None}, PushError, "no access token"),
        ({"token": "hf_" + "w" * 31}, PushError, "does not accept the access token"),
        ({"token": READ}, PushError, "is read-only"),
        ({"private": True}, PushError, "exists and is public, but a private push was asked for"),
        ({"repo_id": "stranger/model"}, PushError, "may not write to stranger/model"),
        ({"repo_id": "a/b/c"}, ValueError, "can't be a repository"),
    ],
)
def test_training_refuses_before_the_first_step_what_it_could_not_publish(
    how, error, sentence, hub, tmp_path, monkeypatch
):
    """With the sentence of `push`."""
    from hf_posgen.run.build import build_run
    from hf_posgen.training.trainer import train
    from tests.conftest import TINY_RUN

    hub.create(REPO)
    here = {"token": WRITE, "endpoint": hub.endpoint} | {key: how[key] for key in how if key != "repo_id"}
    monkeypatch.setattr("hf_posgen.training.trainer.TrainingRun", lambda *_: pytest.fail("training has begun"))
    uploads = partial(BackgroundPush, how.get("repo_id", REPO), **here)
    with pytest.raises(error, match=sentence):
        train(build_run(TINY_RUN), tmp_path / "rope-seed0", quiet=True, uploads=uploads)
    assert titles(hub) == ["initial commit"]


def test_training_publishes_every_state_and_the_run(hub, tmp_path):
    from hf_posgen.run.build import build_run
    from hf_posgen.training.trainer import train
    from tests.conftest import TINY_RUN

    here = {"token": WRITE, "endpoint": hub.endpoint}
    out = train(build_run(TINY_RUN), tmp_path / "rope-seed0", quiet=True, uploads=partial(BackgroundPush, REPO, **here))
    repo = hub.repo(REPO)
    assert sorted(repo.refs) == ["main", "step-000005", "step-000010", "step-000012"], "pruned states are there too"
    assert repo.files()["model.safetensors"] == (out / "model.safetensors").read_bytes()
    assert all(len(repo.history(ref)) == 2 for ref in repo.refs)


def test_the_process_ends_after_the_uploads_and_transformers_own_road_works(run, hub, tmp_path):
    code = f"""
    from hf_posgen.hub.background import BackgroundPush
    from transformers import AutoModelForCausalLM
    AutoModelForCausalLM.from_pretrained({str(run)!r}).push_to_hub("tester/direct")
    background = BackgroundPush({REPO!r})
    background.checkpoint({str(run / "state" / "step-000010" / "model")!r}, "step-000010")
    background.run({str(run)!r})
    """
    python(code, hub.environment(tmp_path / "home", WRITE), tmp_path / "home")
    assert sorted(hub.repo(REPO).refs) == ["main", "step-000010"]
    assert {"model.safetensors", "modeling_posgen.py", "config.json"} <= set(hub.repo("tester/direct").files())
