"""Branches and pull requests as targets of a push, and what a dry run prints."""

import re

import pytest
from huggingface_hub.errors import HfHubHTTPError

from hf_posgen.hub.errors import PushError
from tests.helpers.hub_helpers import REPO, send, titles
from tests.helpers.standin_hub import OTHER, WRITE


def test_a_new_branch_is_made_first_and_an_old_one_used(run, hub):
    send(run, hub)
    main = hub.repo(REPO).refs["main"]
    with (run / "train.jsonl").open("a") as log:
        log.write('{"step": 13, "loss": 1.0}\n')
    assert send(run, hub, revision="next") == f"{hub.endpoint}/{REPO}/tree/next"
    assert send(run, hub, revision="next") and hub.count("POST", "/branch/next") == 1
    assert titles(hub, "next") == ["Add rope-seed0", "Add rope-seed0", "initial commit"]
    assert hub.repo(REPO).refs["main"] == main


@pytest.mark.parametrize(
    "name, quoted",
    [("a#b", "a%23b"), ("50%", "50%25"), ("mine/next", "mine%2Fnext"), ("für&alle=1", "f%C3%BCr%26alle%3D1")],
)
def test_the_address_of_a_branch_is_one_that_a_browser_opens(name, quoted, run, hub):
    assert send(run, hub, revision=name) == f"{hub.endpoint}/{REPO}/tree/{quoted}"
    assert titles(hub, name)[0] == "Add rope-seed0"


def test_a_pull_request_is_opened_once_and_then_used(run, hub, waits):
    hub.create(REPO)
    hub.drop("POST", "/discussions$", "after")
    hub.drop("POST", "/commit/refs", "after")
    assert send(run, hub, create_pr=True) == f"{hub.endpoint}/{REPO}/discussions/1"
    repo = hub.repo(REPO)
    assert titles(hub) == ["initial commit"]
    assert titles(hub, "refs/pr/1") == ["Add rope-seed0", "initial commit"]
    assert [pull["status"] for pull in repo.pulls] == ["open"]
    send(run, hub, create_pr=True)
    assert len(repo.pulls) == 1 and len(repo.history("refs/pr/1")) == 2


def test_a_pull_request_needs_no_rights_but_a_repository(run, hub):
    hub.create(REPO)
    assert send(run, hub, token=OTHER, create_pr=True).endswith("/discussions/1")
    with pytest.raises(PushError, match="no repository tester/nowhere to open a pull request on"):
        send(run, hub, "tester/nowhere", create_pr=True)
    with pytest.raises(ValueError, match="exclude each other"):
        send(run, hub, revision="next", create_pr=True)


@pytest.mark.parametrize("name", ["a b", "", "a..b", "-a", "a/", ".a", "a.lock", "a~1", "a:b", "@", "HEAD", "f" * 40])
def test_what_can_be_no_branch_is_an_error_of_usage_here_and_refused_there(name, run, hub):
    from huggingface_hub import HfApi

    with pytest.raises(ValueError, match=f"^{re.escape(repr(name))} can't be a revision: it must be"):
        send(run, hub, revision=name)
    assert not hub.requests
    if name and not name.endswith("/"):
        hub.create(REPO)
        with pytest.raises(HfHubHTTPError):
            HfApi(endpoint=hub.endpoint, token=WRITE).create_branch(REPO, branch=name)


def test_a_pull_request_given_by_its_number_is_a_target(run, hub):
    with pytest.raises(PushError, match="there is no repository tester/posgen-rope to open a pull request on"):
        send(run, hub, revision="refs/pr/1")
    send(run, hub)
    for wrong in ("refs/pr/0", "refs/pr/x", "refs/pr", "refs/heads/main", "refs/convert/parquet"):
        with pytest.raises(ValueError, match="can't be a revision"):
            send(run, hub, revision=wrong)
    for status in ("draft", "merged"):
        hub.repo(REPO).open_pull("Theirs", "stranger", hub.repo(REPO).refs["main"])["status"] = status
    with (run / "train.jsonl").open("a") as log:
        log.write('{"step": 13, "loss": 1.0}\n')
    assert send(run, hub, revision="refs/pr/1") == f"{hub.endpoint}/{REPO}/discussions/1"
    assert titles(hub, "refs/pr/1")[:2] == ["Add rope-seed0"] * 2 and titles(hub)[1:] == ["initial commit"]
    with pytest.raises(PushError, match=f"^pull request 2 of {REPO} is merged: create_pr opens another$"):
        send(run, hub, revision="refs/pr/2")
    with pytest.raises(PushError, match=f"^{REPO} has no pull request 9: create_pr opens one$"):
        send(run, hub, revision="refs/pr/9")
    assert not [ref for ref in hub.repo(REPO).refs if "refs" in ref and ref not in ("refs/pr/1", "refs/pr/2")]


PLANS = {
    "main": {},
    "main by name": {"revision": "main"},
    "private": {"private": True},
    "revision": {"revision": "next"},
    "pull request": {"create_pr": True},
    "pull request by number": {"revision": "refs/pr/1"},
}


@pytest.mark.parametrize("name", PLANS)
def test_a_dry_run_says_what_the_push_then_does(name, run, hub, capsys):
    """Over where it goes: whether a repository is made, which revisions are written, and how many files."""
    from hf_posgen.cli.dispatch import main

    options, pull = PLANS[name], "pull request" in name
    if pull:
        hub.create(REPO).open_pull("Theirs", "stranger", hub.repo(REPO).refs["main"])
    flags = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}") for key, value in options.items()]
    assert main(["push", str(run), "--repo-id", REPO, "--dry-run", *flags]) in (None, 0)
    plan, card = capsys.readouterr().out.split("\n\nREADME.md:\n\n")
    first, *told = plan.splitlines()
    assert not hub.requests, "a dry run asks nobody"
    before = dict(hub.repo(REPO).refs) if pull else {"main": None}
    send(run, hub, **options)
    assert ("it must be there" in first) == pull and ("make it" in first) == bool(hub.count("POST", "/repos/create"))
    assert ("make it private" in first) == hub.repo(REPO).private
    repo = hub.repo(REPO)
    changed = [ref for ref in repo.refs if before.get(ref) != repo.refs[ref] and len(repo.history(ref)) > 1]
    words = {"refs/pr/2": "our open pull request", "refs/pr/1": "pull request 1,"}
    assert len(told) == len(changed) and all(
        any(words.get(ref, ref if ref == "main" else f"branch {ref}") in line for line in told) for ref in changed
    )
    (target,) = [ref for ref in changed if not ref.startswith("step-")]
    assert f"one commit, {len(repo.files(target)) - 1} files" in told[0], "and .gitattributes"
    pushed = repo.files(target)["README.md"].decode()
    assert card.split("---\n", 2)[2].strip() == pushed.split("---\n", 2)[2].strip(), (
        "but for what the Hub holds already"
    )
