"""Publishing many repositories and a collection of them."""

import runpy
from pathlib import Path

import pytest
import yaml

from hf_posgen.hub import files as hub_files
from hf_posgen.hub.errors import PushError
from hf_posgen.tasks import resolve_task
from tests.helpers.hub_helpers import stranger, titles
from tests.helpers.standin_hub import WRITE


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
