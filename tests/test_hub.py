"""Publishing against the stand-in Hub, and reading back as a stranger would."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from hf_posgen import hub as hub_module
from hf_posgen.hub import BackgroundPush, PushError, push, push_dataset

from .standin_hub import READ, WRITE, StandInHub

REPO = "tester/posgen-rope"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setattr(hub_module, "FIRST_WAIT", 0.01)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True, raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    server = StandInHub()
    yield server
    server.close()


@pytest.fixture
def run(finished_run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(finished_run, copy)
    return copy


def send(run, hub, **options):
    return push(run, REPO, **{"token": WRITE, "endpoint": hub.url} | options)


def stranger(hub, code: str, tmp_path: Path) -> str:
    """Run code in a process that can't import hf_posgen, from an empty folder, with an empty cache."""
    guard = """
    import sys
    class Nobody:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "hf_posgen":
                raise ImportError("hf_posgen is not installed here")
    sys.meta_path.insert(0, Nobody())
    """
    home = tmp_path / "stranger"
    home.mkdir()
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(guard) + textwrap.dedent(code)],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_stranger_loads_it_bit_equal(run, hub, tmp_path):
    url = send(run, hub)
    files = hub.files(REPO)
    assert url.startswith(hub.url) and "model.safetensors" in files and "modeling_posgen.py" in files
    assert not any(name.startswith("state/") for name in files)
    card = files["README.md"].decode()
    for word in ("library_name: transformers", "pipeline_tag: text-generation", "- hf_posgen", "model-index:", REPO):
        assert word in card
    assert any(name.startswith(".eval_results/") for name in files)
    code = f"""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer
    name = {REPO!r}
    model = AutoModelForCausalLM.from_pretrained(name, trust_remote_code=True).eval()
    AutoModel.from_pretrained(name, trust_remote_code=True)
    AutoConfig.from_pretrained(name, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(name)
    ids = tokenizer("1 2 3 4 5 6 7", return_tensors="pt").input_ids
    torch.save(model(ids).logits.detach(), {str(tmp_path / "logits.pt")!r})
    model.save_pretrained("again")
    again = AutoModelForCausalLM.from_pretrained("again", trust_remote_code=True).eval()
    assert torch.equal(again(ids).logits, model(ids).logits)
    print(type(model).__module__)
    """
    assert "transformers_modules" in stranger(hub, code, tmp_path)
    from transformers import AutoModelForCausalLM

    ours = AutoModelForCausalLM.from_pretrained(run).eval()
    assert torch.equal(torch.load(tmp_path / "logits.pt"), ours(torch.arange(1, 8)[None]).logits)


def test_checkpoints_become_branches(run, hub):
    send(run, hub)
    steps = sorted(p.name for p in (run / "state").glob("step-*"))
    heads = hub.repos["models", REPO].heads
    assert steps and all(step in heads and "model.safetensors" in hub.files(REPO, step) for step in steps)


def test_repeating_changes_nothing(run, hub):
    first = send(run, hub)
    commits = len(hub.repos["models", REPO].trees)
    assert send(run, hub) == first
    assert len(hub.repos["models", REPO].trees) == commits


@pytest.mark.parametrize(
    "method, part, status",
    [("POST", "/commit/", 500), ("POST", "/commit/", 429), ("POST", "/commit/", 412), ("PUT", "/lfs-upload/", 0)],
)
def test_a_failure_half_way_is_tried_again(run, hub, method, part, status):
    hub.fail(method, part, status, times=2)
    send(run, hub)
    files = hub.files(REPO)
    assert {"README.md", "model.safetensors", "config.json"} <= set(files)
    repo, above = hub.repos["models", REPO], []
    at = repo.heads["main"]
    while at is not None:
        above.append(at)
        at = repo.log[at][0]
    assert len(above) == 2, "one commit after the first, not two"


def test_results_on_the_card_are_merged(run, hub):
    from huggingface_hub import EvalResult, ModelCard, ModelCardData
    from huggingface_hub.repocard_data import model_index_to_eval_results

    send(run, hub)
    repo = hub.repos["models", REPO]
    theirs = EvalResult("text-generation", "other-set", "Other", "accuracy", 0.5)
    template = "---\n{{ card_data }}\n---\n"
    text = str(ModelCard.from_template(ModelCardData(model_name="x", eval_results=[theirs]), template_str=template))
    repo.heads["main"] = repo.add(repo.trees[repo.heads["main"]] | {"README.md": text.encode()}, repo.heads["main"], "x")
    send(run, hub)
    data = ModelCard(hub.files(REPO)["README.md"].decode()).data.to_dict()
    _, results = model_index_to_eval_results(data["model-index"])
    names = {(r.dataset_type, r.metric_type) for r in results}
    assert ("other-set", "accuracy") in names and ("posgen-fixed-offset", "exact_match") in names


def test_branches_and_pull_requests(run, hub):
    send(run, hub)
    main = hub.repos["models", REPO].heads["main"]
    (run / "run.yaml").write_text((run / "run.yaml").read_text() + "# changed\n")
    send(run, hub, revision="next")
    heads = hub.repos["models", REPO].heads
    assert heads["main"] == main and heads["next"] != main
    send(run, hub, create_pr=True)
    assert heads["main"] == main and "refs/pr/1" in heads


@pytest.mark.parametrize(
    "token, sentence",
    [("wrong-secret", "not valid"), (READ, "may not write")],
)
def test_bad_tokens_get_one_sentence_without_the_token(run, hub, token, sentence):
    with pytest.raises(PushError, match=sentence) as error:
        send(run, hub, token=token)
    assert token not in str(error.value)


def test_public_where_private_was_asked_is_refused(run, hub):
    send(run, hub)
    with pytest.raises(PushError, match="public, but private was asked"):
        send(run, hub, private=True)
    send(run, hub)
    push(run, "tester/hidden", private=True, token=WRITE, endpoint=hub.url)
    assert hub.repos["models", "tester/hidden"].private


def test_no_network_and_no_run(run, tmp_path, monkeypatch):
    monkeypatch.setattr(hub_module, "FIRST_WAIT", 0.01)
    with pytest.raises(PushError, match="can't be reached"):
        push(run, REPO, token=WRITE, endpoint="http://127.0.0.1:9")
    with pytest.raises(ValueError, match="no finished run"):
        push(tmp_path, REPO)


def test_background_push_uploads_a_frozen_copy(run, hub):
    send(run, hub)
    background = BackgroundPush(REPO, token=WRITE, endpoint=hub.url)
    background.checkpoint(run, "step-000007")
    expected = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").write_bytes(b"overwritten while the upload runs")
    background.wait()
    assert hub.files(REPO, "step-000007")["model.safetensors"] == expected


def test_model_push_to_hub_works(finished_run, hub, tmp_path):
    code = f"""
    import hf_posgen
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained({str(finished_run)!r})
    model.push_to_hub("tester/direct", token={WRITE!r})
    """
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {"model.safetensors", "modeling_posgen.py", "config.json"} <= set(hub.files("tester/direct"))


def test_a_stranger_loads_a_published_task(hub, tmp_path):
    from hf_posgen.tasks import build_task, examples, export_task

    folder = export_task("fixed_offset", tmp_path / "task", configs=["last_k3"], count=20, train_count=20)
    push_dataset(folder, "tester/posgen-fixed-offset", token=WRITE, endpoint=hub.url)
    code = """
    from datasets import load_dataset
    data = load_dataset("tester/posgen-fixed-offset", "last_k3", split="longer")
    stream = load_dataset("tester/posgen-fixed-offset", "last_k3", split="longer", streaming=True)
    assert next(iter(stream))["input_ids"] == data[0]["input_ids"]
    print(data[0]["input_ids"])
    """
    out = stranger(hub, code, tmp_path)
    task = build_task("fixed_offset")
    tokens, _ = examples(task, 0, "longer", task.cells("longer")[0], 0, 1)
    assert str(tokens[0].tolist()) in out
