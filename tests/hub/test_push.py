"""What a push sends, and reading it back as a stranger would."""

import torch

from tests.helpers.hub_helpers import REPO, send, stranger, titles


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


def test_the_files_of_a_tokenizer_travel_and_go_with_it(run, hub):
    """Chat templates, words added later: what the next tokenizer lacks goes, what somebody else added stays."""
    ours = {"chat_template.jinja", "additional_chat_templates/tools.jinja", "added_tokens.json"}
    (run / "additional_chat_templates").mkdir()
    for path in ours:
        (run / path).write_text("{}")
    send(run, hub)
    assert ours <= set(hub.repo(REPO).files())
    theirs = "additional_chat_templates/theirs.jinja"
    hub.repo(REPO).write(theirs, b"{{ messages }}")
    for path in ours:
        (run / path).unlink()
    send(run, hub)
    files = set(hub.repo(REPO).files())
    assert not ours & files and {theirs, "tokenizer.json"} <= files


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

    def links(ref):
        return ModelCard(hub.repo(REPO).files(ref)["README.md"].decode()).data.datasets

    send(run, hub)
    assert links("main") is links("step-000010") is None
    hub.create("tester/posgen-fixed-offset", "datasets")
    send(run, hub)
    assert links("main") == links("step-000010") == ["tester/posgen-fixed-offset"]
