"""Publishing against the stand-in Hub, with faults injected, and reading back as a stranger would."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import textwrap
import traceback
from functools import partial
from pathlib import Path

import pytest
import torch
import yaml
from huggingface_hub.errors import HfHubHTTPError

from hf_posgen.hub import files as hub_files
from hf_posgen.hub.files import MODEL, RECORD, freeze
from hf_posgen.hub.publish import BackgroundPush, PushError, push, push_dataset
from hf_posgen.tasks import resolve_task
from tests.helpers.standin_hub import OTHER, READ, WRITE, StandInHub, hub_fixture  # noqa: F401

REPO = "tester/posgen-rope"


@pytest.fixture
def run(finished_run, tmp_path):
    return published(finished_run, tmp_path)


def published(finished_run: Path, into: Path) -> Path:
    """A copy of the run, of a task that has a name."""
    run = Path(shutil.copytree(finished_run, into / "rope-seed0"))
    tree = yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump(tree | {"task": resolve_task("fixed_offset")}, sort_keys=False))
    return run


@pytest.fixture
def waits(monkeypatch):
    """The waits between tries, which take no time."""
    found = []
    monkeypatch.setattr("time.sleep", found.append)
    return found


def send(run, hub, repo_id=REPO, **options):
    return push(run, repo_id, **{"token": WRITE, "endpoint": hub.endpoint} | options)


def titles(hub, revision="main", repo_id=REPO):
    return [commit.title for commit in hub.repo(repo_id).history(revision)]


def python(code: str, env: dict, cwd: Path) -> str:
    """Run code in another process; its output."""
    cwd.mkdir(exist_ok=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith("HF_")} | env
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(
        command, env=env | {"OMP_NUM_THREADS": "1"}, cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def stranger(hub, code: str, home: Path) -> str:
    """Run code where hf_posgen can't be imported, without a token, with an empty cache, in an empty folder."""
    guard = """
    import sys
    class Nobody:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "hf_posgen":
                raise ImportError("hf_posgen is not installed here")
    sys.meta_path.insert(0, Nobody())
    try:
        import hf_posgen
    except ImportError:
        pass
    else:
        raise SystemExit("hf_posgen can be imported")
    """
    return python(textwrap.dedent(guard) + textwrap.dedent(code), hub.environment(home), home)


# What arrives


def test_a_stranger_loads_model_checkpoint_and_tokenizer_bit_equal(run, hub, tmp_path):
    assert send(run, hub) == f"{hub.endpoint}/{REPO}"
    code = f"""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer
    name = {REPO!r}
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=True)
    ids = tokenizer("1 2 3 4 5 6 7", return_tensors="pt").input_ids
    model = AutoModelForCausalLM.from_pretrained(name, trust_remote_code=True).eval()
    early = AutoModelForCausalLM.from_pretrained(name, revision="step-000010", trust_remote_code=True).eval()
    AutoModel.from_pretrained(name, trust_remote_code=True)
    assert AutoConfig.from_pretrained(name, trust_remote_code=True).model_type == "posgen"
    assert "transformers_modules" in type(model).__module__
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1)  # as a fine-tune would leave it: saved again with its code, it loads again
        model.save_pretrained("again")
        again = AutoModelForCausalLM.from_pretrained("again", trust_remote_code=True).eval()
        logits = [one(ids).logits for one in (model, early, again)]
    torch.save((ids, *logits), {str(tmp_path / "seen.pt")!r})
    """
    stranger(hub, code, tmp_path / "stranger")
    from transformers import AutoModelForCausalLM

    ids, theirs, early, again = torch.load(tmp_path / "seen.pt")
    assert ids.tolist() == [[1, 2, 3, 4, 5, 6, 7]]
    with torch.no_grad():
        ours = AutoModelForCausalLM.from_pretrained(run).eval()(ids).logits
        step = AutoModelForCausalLM.from_pretrained(run / "state" / "step-000010" / "model").eval()(ids).logits
    assert torch.equal(theirs, ours) and torch.equal(again, ours)
    assert torch.equal(early, step) and not torch.equal(early, ours)


def test_what_travels_and_in_how_many_commits(run, hub):
    (run / "figures").mkdir()
    (run / "figures" / "curve.png").write_bytes(b"png")
    (run / "figures" / "note.txt").write_text("not for publication")
    (run / "notes.txt").write_text("not for publication")
    send(run, hub)
    files = hub.repo(REPO).files()
    expected = {"config.json", "model.safetensors", "modeling_posgen.py", "tokenizer.json", "generation_config.json"}
    expected |= {"run.yaml", "train.jsonl", "results.jsonl", "figures/curve.png", "README.md", ".gitattributes"}
    assert expected <= set(files) and any(path.startswith(".eval_results/") for path in files)
    assert not any(path.startswith("state/") or path.endswith(".txt") for path in files)
    assert files["model.safetensors"] == (run / "model.safetensors").read_bytes()
    assert "figures/curve.png" in files["README.md"].decode()
    assert titles(hub) == ["Add rope-seed0", "initial commit"]
    assert not (run / "README.md").exists(), "a push leaves the run folder as it was"


def test_every_commit_names_its_parent(run, hub, monkeypatch):
    from huggingface_hub import HfApi

    parents, plain = [], HfApi.create_commit
    monkeypatch.setattr(
        HfApi,
        "create_commit",
        lambda *args, **kwargs: parents.append(kwargs["parent_commit"]) or plain(*args, **kwargs),
    )
    send(run, hub)
    first = hub.repo(REPO).history()[-1].oid
    assert parents == [first] * 3  # main and two checkpoints, each on the empty repository


def test_kept_states_become_branches_that_hold_nothing_of_the_final_model(run, hub):
    send(run, hub)
    repo = hub.repo(REPO)
    assert sorted(repo.refs) == ["main", "step-000010", "step-000012"]
    files = repo.files("step-000010")
    model = run / "state" / "step-000010" / "model"
    assert files["model.safetensors"] == (model / "model.safetensors").read_bytes()
    assert "results.jsonl" not in files and "model-index" not in files["README.md"].decode()
    assert 'revision="step-000010"' in files["README.md"].decode()
    assert titles(hub, "step-000010") == ["Checkpoint after 10 steps", "initial commit"]


def test_a_damaged_state_is_named_and_left_out(run, hub, caplog):
    (run / "state" / "step-000010" / "progress.json").write_text("{}")
    send(run, hub)
    assert sorted(hub.repo(REPO).refs) == ["main", "step-000012"]
    assert "step-000010 is not published: progress.json is damaged" in caplog.text


def test_pushing_again_sends_nothing(run, hub):
    send(run, hub)
    before = len(hub.requests)
    send(run, hub)
    assert [method for method, _, _ in hub.requests[before:] if method not in ("GET", "HEAD")] == []


def test_other_weights_replace_what_belongs_to_the_old_ones_and_nothing_else(run, hub):
    repo = hub.create(REPO)
    for path in ("model-00001-of-00002.safetensors", "analysis.json", "figures/old.png", "LICENSE", "demo.py"):
        repo.write(path, b"theirs")
    send(run, hub)
    assert {"LICENSE", "demo.py"} <= set(repo.files())
    assert not {"model-00001-of-00002.safetensors", "analysis.json", "figures/old.png"} & set(repo.files())


def test_a_card_links_the_data_set_of_its_task_once_it_is_there(run, hub):
    from huggingface_hub import ModelCard

    links = lambda ref: ModelCard(hub.repo(REPO).files(ref)["README.md"].decode()).data.datasets  # noqa: E731
    send(run, hub)
    assert links("main") is links("step-000010") is None
    hub.create("tester/posgen-fixed-offset", "datasets")
    send(run, hub)
    assert links("main") == links("step-000010") == ["tester/posgen-fixed-offset"]


# Results of others


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
    ours = lambda: sorted(path for path in hub.repo(REPO).files() if path.startswith(".eval_results/posgen-"))  # noqa: E731
    told = lambda: ModelCard(hub.repo(REPO).files()["README.md"].decode()).data  # noqa: E731
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


# Interruptions


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


# Branches and pull requests


def test_a_new_branch_is_made_first_and_an_old_one_used(run, hub):
    send(run, hub)
    main = hub.repo(REPO).refs["main"]
    with (run / "train.jsonl").open("a") as log:
        log.write('{"step": 13, "loss": 1.0}\n')
    assert send(run, hub, revision="next") == f"{hub.endpoint}/{REPO}/tree/next"
    assert send(run, hub, revision="next") and hub.count("POST", "/branch/next") == 1
    assert titles(hub, "next") == ["Add rope-seed0", "Add rope-seed0", "initial commit"]
    assert hub.repo(REPO).refs["main"] == main


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
    first, *told = capsys.readouterr().out.splitlines()
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


# Refusals


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
    with pytest.raises(ValueError, match=r"is no finished run: it has no run.yaml and no config.json and no model"):
        send(tmp_path, hub)
    (run / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"is no finished run: it has no model.safetensors$"):
        send(run, hub)
    with pytest.raises(ValueError, match="is no exported task"):
        push_dataset(run, "tester/task", token=WRITE, endpoint=hub.endpoint)
    assert not hub.requests


# Frozen copies and the background


def test_a_frozen_copy_holds_still_and_a_restless_folder_is_refused(run, tmp_path, monkeypatch):
    frozen, old = freeze(run, tmp_path / "frozen", MODEL + RECORD), (run / "run.yaml").read_bytes()
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
        freeze(run, tmp_path / "again", MODEL + RECORD)


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
    from hf_posgen.training.launch import train
    from tests.conftest import TINY_RUN

    hub.create(REPO)
    here = {"token": WRITE, "endpoint": hub.endpoint} | {key: how[key] for key in how if key == "token"}
    monkeypatch.setattr("hf_posgen.hub.publish.BackgroundPush", partial(BackgroundPush, **here))
    monkeypatch.setattr("hf_posgen.training.launch.Trainer", lambda *_: pytest.fail("training has begun"))
    where = {"push": how.get("repo_id", REPO), "private": how.get("private", False)}
    with pytest.raises(error, match=sentence):
        train(build_run(TINY_RUN), tmp_path / "rope-seed0", quiet=True, **where)
    assert titles(hub) == ["initial commit"]


def test_training_publishes_every_state_and_the_run(hub, tmp_path, monkeypatch):
    from hf_posgen.run.build import build_run
    from hf_posgen.training.launch import train
    from tests.conftest import TINY_RUN

    here = {"token": WRITE, "endpoint": hub.endpoint}
    monkeypatch.setattr("hf_posgen.hub.publish.BackgroundPush", partial(BackgroundPush, **here))
    monkeypatch.setattr("hf_posgen.hub.publish.push", partial(push, **here))
    out = train(build_run(TINY_RUN), tmp_path / "rope-seed0", quiet=True, push=REPO)
    repo = hub.repo(REPO)
    assert sorted(repo.refs) == ["main", "step-000005", "step-000010", "step-000012"], "pruned states are there too"
    assert repo.files()["model.safetensors"] == (out / "model.safetensors").read_bytes()
    assert all(len(repo.history(ref)) == 2 for ref in repo.refs)


def test_the_process_ends_after_the_uploads_and_transformers_own_road_works(run, hub, tmp_path):
    code = f"""
    from hf_posgen.hub.publish import BackgroundPush
    from transformers import AutoModelForCausalLM
    AutoModelForCausalLM.from_pretrained({str(run)!r}).push_to_hub("tester/direct")
    background = BackgroundPush({REPO!r})
    background.checkpoint({str(run / "state" / "step-000010" / "model")!r}, "step-000010")
    background.run({str(run)!r})
    """
    python(code, hub.environment(tmp_path / "home", WRITE), tmp_path / "home")
    assert sorted(hub.repo(REPO).refs) == ["main", "step-000010"]
    assert {"model.safetensors", "modeling_posgen.py", "config.json"} <= set(hub.repo("tester/direct").files())


# Data sets and releases


def test_a_stranger_loads_a_published_task(hub, tmp_path):
    from hf_posgen.tasks import build_task, examples, export_task

    folder = export_task("fixed_offset", tmp_path / "task", configs=["last_k3"], count=20, train_count=20)
    name = "tester/posgen-fixed-offset"
    assert push_dataset(folder, name, token=WRITE, endpoint=hub.endpoint) == f"{hub.endpoint}/datasets/{name}"
    push_dataset(folder, name, token=WRITE, endpoint=hub.endpoint)
    repo = hub.repo(name, "datasets")
    assert len(repo.history()) == 2 and "eval.yaml" in repo.files()
    assert f'load_dataset("{name}"' in repo.files()["README.md"].decode()
    code = f"""
    from datasets import load_dataset
    data = load_dataset({name!r}, "last_k3", split="longer")
    stream = list(load_dataset({name!r}, "last_k3", split="longer", streaming=True))
    assert [row["input_ids"] for row in stream] == data["input_ids"][:]
    print(data[0]["input_ids"])
    """
    task = build_task("fixed_offset")
    tokens, _ = examples(task, 0, "longer", task.cells("longer")[0], 0, 1)
    assert str(tokens[0].tolist()) in stranger(hub, code, tmp_path / "stranger")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """{configuration or more: exported folder}"""
    from hf_posgen.tasks import export_task

    home = tmp_path_factory.mktemp("tasks")
    make = lambda *configs: export_task("fixed_offset", home / "-".join(configs), configs=[*configs], **SMALL)  # noqa: E731
    return {name: make(*name.split()) for name in ("last_k3 last_k7", "last_k1", "last_k7")}


SMALL = {"count": 4, "train_count": 4}
TASK = "tester/posgen-fixed-offset"


def send_task(folder, hub):
    push_dataset(folder, TASK, token=WRITE, endpoint=hub.endpoint)
    repo = hub.repo(TASK, "datasets")
    return repo, {path: data.decode() for path, data in repo.files().items() if not path.endswith(".parquet")}


def test_a_further_configuration_joins_those_that_are_there(tasks, hub, tmp_path):
    repo, first = send_task(tasks["last_k3 last_k7"], hub)
    shards = {path: data for path, data in repo.files().items() if path.endswith(".parquet")}
    repo, both = send_task(tasks["last_k1"], hub)
    assert shards.items() <= repo.files().items(), "nothing of the others is touched"
    card, entries = both["README.md"], yaml.safe_load(both["eval.yaml"])["tasks"]
    head = yaml.safe_load(card.split("---")[1])
    assert [one["config_name"] for one in head["configs"]] == ["last_k3", "last_k7", "last_k1"]
    assert [one["config_name"] for one in head["configs"] if one.get("default")] == ["last_k3"]
    assert [one["config_name"] for one in head["dataset_info"]] == ["last_k3", "last_k7", "last_k1"]
    assert re.findall(r"^## .*", card, re.M)[:4] == ["## `last_k3`", "## `last_k7`", "## `last_k1`", "## Files"]
    rows = set(re.findall(r"^\| (\w+/\S+\.parquet) ", card, re.M))
    assert rows == {path for path in repo.files() if path.endswith(".parquet")}
    assert entries[0]["id"] == "last_k3_longer" and "the headline is `last_k3_longer`" in card
    assert {one["config"] for one in entries} == {"last_k3", "last_k7", "last_k1"}
    for line in ("parameter, where it differs from `last_k3`", f'load_dataset("{TASK}", "last_k3"'):
        assert line in card
    commits = len(repo.history())
    for name in ("last_k1", "last_k3 last_k7"):
        assert send_task(tasks[name], hub)[1] == both and len(repo.history()) == commits, "nothing had changed"
    alone = send_task(tasks["last_k7"], hub)[1]
    assert send_task(tasks["last_k7"], hub)[1] == alone and len(repo.history()) == commits + 1
    assert re.findall(r"^## .*", alone["README.md"], re.M) == re.findall(r"^## .*", card, re.M)
    assert send_task(tasks["last_k3 last_k7"], hub)[1] == both, "each configuration as it was pushed last"
    code = f"""
    from datasets import get_dataset_config_names, load_dataset
    print(get_dataset_config_names({TASK!r}), len(load_dataset({TASK!r}, "last_k1", split="test")))
    print(len(load_dataset({TASK!r}, split="longer")))
    """
    assert "['last_k3', 'last_k7', 'last_k1']" in stranger(hub, code, tmp_path / "stranger")


def test_the_published_benchmark_file_is_the_exported_one(tasks, hub):
    for folder in tasks.values():
        hub.repos.clear()
        assert send_task(folder, hub)[1]["eval.yaml"] == (folder / "eval.yaml").read_text()


def test_what_others_wrote_into_a_data_set_stays(tasks, hub):
    repo, files = send_task(tasks["last_k1"], hub)
    card = (
        files["README.md"].replace("license: apache-2.0", "license: mit\nlanguage: en")
        + "\nBy hand.\n\n## More by hand\n"
    )
    theirs = {"README.md": card, "extra/x.parquet": "theirs", "last_k1/note.parquet": "theirs", "notes.md": "theirs"}
    theirs["eval.yaml"] = files["eval.yaml"] + "owner: them\n"
    old = "last_k1/test-00001-of-00002.parquet"
    for path, text in (theirs | {old: "a shard of a larger export"}).items():
        repo.write(path, text.encode())
    for name in ("last_k1", "last_k7", "last_k1"):
        _, found = send_task(tasks[name], hub)
        assert found["README.md"].endswith("-->\n\nBy hand.\n\n## More by hand\n")
        head = yaml.safe_load(found["README.md"].split("---")[1])
        assert (head["license"], head["language"]) == ("mit", "en")
        assert yaml.safe_load(found["eval.yaml"])["owner"] == "them"
    assert theirs.keys() <= repo.files().keys() and old not in repo.files()
    edited = found["README.md"].replace("Seed 0.", "Seed 0. Mine.")
    repo.write("README.md", edited.encode())
    with pytest.raises(PushError, match="README.md that is there was edited above its line .*: move what was added"):
        send_task(tasks["last_k1"], hub)
    assert repo.files()["README.md"].decode() == edited


@pytest.mark.parametrize(
    "text", ["A card by hand.\n", "---\nlicense: mit\n---\n\nA card by hand.\n", "---\n- a\n---\n", "---\n[\n---\n"]
)
def test_a_card_that_is_not_ours_is_kept_below_ours_or_not_touched(text, tasks, hub):
    repo = hub.create(TASK, "datasets")
    repo.write("README.md", text.encode())
    if "by hand" in text:
        _, files = send_task(tasks["last_k1"], hub)
        assert files["README.md"].endswith("-->\n\nA card by hand.\n") and "## `last_k1`" in files["README.md"]
        assert send_task(tasks["last_k1"], hub)[1] == files
    else:
        with pytest.raises(PushError, match="metadata of the README.md that is there already can't be read"):
            send_task(tasks["last_k1"], hub)
        assert repo.files()["README.md"].decode() == text


def test_a_data_set_is_told_first(tasks, hub, capsys):
    from hf_posgen.cli.dispatch import main

    assert main(["data", "push", str(tasks["last_k3 last_k7"]), "--repo-id", TASK, "--private", "--dry-run"]) in (
        None,
        0,
    )
    told = capsys.readouterr().out
    assert not hub.requests and f"data set {TASK}: make it private" in told and "last_k3, last_k7" in told
    repo, _ = send_task(tasks["last_k3 last_k7"], hub)
    assert f"one commit, {len(repo.files()) - 1} files" in told and len(repo.history()) == 2


def test_a_data_set_with_a_token_in_its_card_is_refused(tasks, hub, tmp_path):
    folder = shutil.copytree(tasks["last_k1"], tmp_path / "task")
    with (folder / "README.md").open("a") as card:
        card.write("hf_" + "s" * 34)
    with pytest.raises(PushError, match="README.md holds what looks like an access token"):
        send_task(folder, hub)


def test_runs_of_two_configurations_get_two_names(run):
    from hf_posgen.hub.release import model_name
    from hf_posgen.tasks import config_spec

    names, tree = [], yaml.safe_load((run / "run.yaml").read_text())
    for config in ("anchor_4_8", "anchor_4_8_selective"):
        task = resolve_task(config_spec("delay_copy", config))
        (run / "run.yaml").write_text(yaml.safe_dump(tree | {"task": task}))
        names.append(model_name(run))
    assert names == ["posgen-delay-copy-anchor-4-8-rope-seed0", "posgen-delay-copy-anchor-4-8-selective-rope-seed0"]


def test_a_release_is_told_first_then_done_once(run, hub, tmp_path):
    from hf_posgen.hub.release import release
    from hf_posgen.tasks import export_task

    task = export_task("fixed_offset", tmp_path / "task", configs=["last_k3"], count=4, train_count=4)
    told = "\n".join(release("lab", [run], [task], collection="Reference checkpoints", dry_run=True))
    model, data = "lab/posgen-fixed-offset-rope-seed0", "lab/posgen-fixed-offset"
    for words in (f"model {model}:", f"data set {data}:", "branch step-000010", "one commit", "Reference", "last_k3"):
        assert words in told
    assert not hub.requests, "a dry run asks nobody"
    done = release("lab", [run], [task], collection="Reference checkpoints", token=WRITE, endpoint=hub.endpoint)
    again = release("lab", [run], [task], collection="Reference checkpoints", token=WRITE, endpoint=hub.endpoint)
    assert done == again and len(done) == 3
    (collection,) = hub.collections.values()
    assert [(item["type"], item["id"]) for item in collection["items"]] == [("dataset", data), ("model", model)]
    assert f"- {data}" in hub.repo(model).files()["README.md"].decode()
    with pytest.raises(ValueError, match="two folders would become the model lab/posgen-fixed-offset-rope-seed0"):
        release("lab", [run, run], [], dry_run=True)


def test_a_stranger_loads_the_published_metrics_by_name(hub, tmp_path):
    from hf_posgen.hub.release import release

    folders = sorted((Path(hub_files.__file__).parents[1] / "metrics").glob("posgen_*"))
    told = "\n".join(release("lab", [], [], folders, collection="Metrics", dry_run=True))
    assert not hub.requests and len(folders) == 3
    for _ in range(2):
        release("lab", [], [], folders, collection="Metrics", token=WRITE, endpoint=hub.endpoint)
    for folder in folders:
        repo = hub.repo(f"lab/{folder.name}", "spaces")
        assert f"space lab/{folder.name}: make it public" in told and len(repo.history()) == 2
        assert f"one commit, {len(repo.files()) - 1} files, the metric {folder.name}" in told
        assert f'evaluate.load("lab/{folder.name}")' in repo.files()["README.md"].decode()
        assert f"lab/{folder.name}" in repo.files()["index.html"].decode() and "__init__.py" not in repo.files()
        assert not [path for path, data in repo.files().items() if b"owner" in data.replace(b"owners", b"")]
    (collection,) = hub.collections.values()
    assert [item["type"] for item in collection["items"]] == ["space"] * 3
    code = """
    import evaluate
    accuracy = evaluate.load("lab/posgen_accuracy")
    print(accuracy.compute(predictions=[[5, 7]], references=[[-100, 7]], length=[2], distance=[1])["exact_match"])
    print(evaluate.load("lab/posgen_perplexity").name, evaluate.load("lab/posgen_extrapolation").name)
    """
    said = stranger(hub, code, tmp_path / "stranger")
    assert "1.0" in said and "posgen_perplexity posgen_extrapolation" in said
    with pytest.raises(ValueError, match="is no metric: it needs metrics.py"):
        release("lab", [], [], [folders[0].parent], dry_run=True)


RELEASE_FAULTS = {
    "data set's repository is made, answer lost": ("drop", "POST", "/repos/create", "after"),
    "shards break off": ("drop", "PUT", "/lfs/", "middle"),
    "data set's commit answers 503": ("fail", "POST", "/datasets/.*/commit/main", 503),
    "data set's commit takes effect, answer lost": ("drop", "POST", "/datasets/.*/commit/main", "after"),
    "collection is made, answer lost": ("drop", "POST", "/collections$", "after"),
    "collection answers 429": ("fail", "POST", "/collections$", 429),
    "item is added, answer lost": ("drop", "POST", "/collections/.*/items?$", "after"),
    "item answers 500": ("fail", "POST", "/collections/.*/items?$", 500),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    from hf_posgen.tasks import export_task

    folder = tmp_path_factory.mktemp("export") / "task"
    return export_task("fixed_offset", folder, configs=["last_k3"], count=4, train_count=4)


@pytest.mark.parametrize("name", RELEASE_FAULTS)
def test_a_release_is_whole_after_a_passing_fault(name, run, hub, waits, exported):
    from hf_posgen.hub.release import release

    how, *what = RELEASE_FAULTS[name]
    getattr(hub, how)(*what)
    release("lab", [run], [exported], collection="Reference", token=WRITE, endpoint=hub.endpoint)
    model, data = "lab/posgen-fixed-offset-rope-seed0", "lab/posgen-fixed-offset"
    assert waits and titles(hub, repo_id=model) == ["Add rope-seed0", "initial commit"]
    assert [commit.title for commit in hub.repo(data, "datasets").history()] == [
        "Add posgen-fixed-offset",
        "initial commit",
    ]
    (collection,) = hub.collections.values()
    assert [item["id"] for item in collection["items"]] == [data, model]


def test_a_public_collection_is_no_place_for_what_is_private(run, hub, exported):
    from hf_posgen.hub.release import release

    where = {"token": WRITE, "endpoint": hub.endpoint, "collection": "Reference"}
    release("lab", [], [exported], **where)
    with pytest.raises(PushError, match="the collection lab/reference-.* exists and is public, but a private"):
        release("lab", [run], [], private=True, **where)


def test_the_script_publishes_nothing_on_a_dry_run(run, hub, tmp_path, monkeypatch, capsys):
    script = str(Path(__file__).parents[2] / "scripts" / "publish.py")
    options = ["--org", "lab", "--runs", str(run), "--dry-run", "--cards", str(tmp_path / "cards"), "--metrics"]
    monkeypatch.setattr("sys.argv", [script, *options])
    runpy.run_path(script, run_name="__main__")
    told = capsys.readouterr().out
    assert "model lab/posgen-fixed-offset-rope-seed0: make it public" in told and "space lab/posgen_accuracy:" in told
    card = (tmp_path / "cards" / "posgen-fixed-offset-rope-seed0.md").read_text()
    assert 'from_pretrained("lab/posgen-fixed-offset-rope-seed0"' in card
    asked = {"name --runs, --datasets or --metrics": (2, ["--org", "lab"]), "no access token": (1, options[:4])}
    for told, (code, given) in asked.items():
        monkeypatch.setattr("sys.argv", [script, *given])
        with pytest.raises(SystemExit) as left:
            runpy.run_path(script, run_name="__main__")
        assert left.value.code == code and told in capsys.readouterr().err
