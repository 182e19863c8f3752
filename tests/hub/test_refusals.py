"""What a push refuses: one sentence each, and no token anywhere."""

import traceback

import pytest

from hf_posgen.hub.errors import PushError
from hf_posgen.hub.publish import push, push_dataset
from tests.helpers.hub_helpers import REPO, send, titles
from tests.helpers.standin_hub import READ, WRITE


@pytest.mark.parametrize(
    "token, repo_id, sentence",
    [
        (None, REPO, r"^no access token: log in with `hf auth login` or set HF_TOKEN"),
        ("hf_" + "w" * 31, REPO, r"does not accept the access token"),
        ("secret-of-another-shape", REPO, r"does not accept the access token"),
        (READ, REPO, r"^the access token of tester is read-only: publishing needs one with write access$"),
        (WRITE, "stranger/model", r"may not write to stranger/model: it needs write access there \(You don't"),
        (WRITE, "stranger/private", r"may not write to stranger/private"),
    ],
)
def test_bad_tokens_get_one_sentence_without_the_token(token, repo_id, sentence, run, hub, caplog):
    hub.create("stranger/private", private=True)
    caplog.set_level("DEBUG")
    with pytest.raises(PushError, match=sentence) as raised:
        send(run, hub, repo_id, token=token)
    error = raised.value
    told = "".join(traceback.format_exception(error)) + repr(error) + caplog.text
    assert token is None or token not in told
    assert "\n" not in str(error) and error.__context__ is None and error.__cause__ is None
    assert not any(kind == "models" and name != "stranger/private" for kind, name in hub.repos), "nothing was made"


def test_an_expired_right_shows_as_a_sentence_too(run, hub):
    hub.create(REPO)
    hub.fail("POST", "/commit/main", 403)
    with pytest.raises(PushError, match="the access token may not write to tester/posgen-rope"):
        send(run, hub)


def test_the_token_is_in_no_card_log_or_request_but_its_header(run, hub, caplog, waits):
    caplog.set_level("DEBUG")
    hub.fail("POST", "/commit/main", 500)
    send(run, hub)
    assert WRITE not in caplog.text
    for repo in hub.repos.values():
        assert not any(
            WRITE.encode() in blob.data for commit in repo.commits.values() for blob in commit.files.values()
        )
    assert not any(WRITE in path for _, path, _ in hub.requests)
    sent = {name.lower() for headers in hub.headers for name, value in headers.items() if WRITE in value}
    assert sent == {"authorization"}


@pytest.mark.parametrize("secret", ["hf_" + "s" * 34, WRITE])
@pytest.mark.parametrize("path", ["train.jsonl", "report.md", "figures/curve.svg", "figures/curve.png", "own_part.py"])
def test_a_run_that_holds_a_token_is_refused(path, secret, run, hub):
    (run / "figures").mkdir()
    (run / path).write_bytes(b"\xff" + secret.encode() + b"\n")
    with pytest.raises(PushError, match=rf"^{path} holds what looks like an access token: take it out first$"):
        send(run, hub)
    assert not hub.repos


def test_public_where_private_was_asked_for_is_refused(run, hub):
    hub.create(REPO)
    with pytest.raises(PushError, match="exists and is public, but a private push was asked for"):
        send(run, hub, private=True)
    assert titles(hub) == ["initial commit"]
    send(run, hub, "tester/hidden", private=True)
    assert hub.repo("tester/hidden").private
    send(run, hub, "tester/hidden")
    send(run, hub, "mine")
    assert not hub.repo("tester/mine").private, "a name without owner is the token's"


def test_a_public_repository_that_somebody_makes_meanwhile_is_refused_too(run, hub):
    hub.meddle("POST", "/repos/create", lambda: hub.create(REPO))
    with pytest.raises(PushError, match="exists and is public, but a private push was asked for"):
        send(run, hub, private=True)
    assert titles(hub) == ["initial commit"]


def test_no_network(run, hub, waits, monkeypatch):
    with pytest.raises(PushError, match=r"^http://127.0.0.1:9 can't be reached \(ConnectError\): check the network$"):
        push(run, REPO, token=WRITE, endpoint="http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PushError, match="offline mode is on: unset HF_HUB_OFFLINE"):
        send(run, hub)


@pytest.mark.parametrize("kind", [ConnectionError, TimeoutError, RuntimeError])
def test_what_the_xet_client_raises_is_tried_again_and_told(kind, run, hub, waits, monkeypatch):
    def broken(**_):
        raise kind(f"Network error, sent {WRITE}")

    monkeypatch.setattr("huggingface_hub._commit_api._upload_files", broken)
    with pytest.raises(PushError, match=r"the upload to .* broke off: Network error, sent \[token\]$"):
        send(run, hub)
    assert len(waits) == 4


def test_a_mistake_in_the_code_is_not_taken_for_trouble_with_the_hub(run, hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub._commit_api._upload_files", lambda **_: {}["mistake"])
    with pytest.raises(KeyError):
        send(run, hub)


def test_bad_names_and_folders_are_errors_of_usage(run, hub, tmp_path):
    with pytest.raises(ValueError, match=r"'a/b/c' can't be a repository"):
        send(run, hub, "a/b/c")
    with pytest.raises(ValueError, match=r"is no finished run: it holds no run.yaml and no config.json and no model"):
        send(tmp_path, hub)
    (run / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"is no finished run: it holds no model.safetensors$"):
        send(run, hub)
    with pytest.raises(ValueError, match="is no exported task"):
        push_dataset(run, "tester/task", token=WRITE, endpoint=hub.endpoint)
    assert not hub.requests
