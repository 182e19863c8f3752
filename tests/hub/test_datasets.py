"""Publishing exported tasks as data sets, beside what is there already."""

import re
import shutil

import pytest
import yaml

from hf_posgen.hub.errors import PushError
from hf_posgen.hub.publish import push_dataset
from tests.helpers.hub_helpers import SMALL, TASK, send_task, stranger
from tests.helpers.standin_hub import WRITE


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """{configuration or more: exported folder}"""
    from hf_posgen.tasks import export_task

    home = tmp_path_factory.mktemp("tasks")

    def make(*configs):
        return export_task("fixed_offset", home / "-".join(configs), configs=[*configs], **SMALL)

    return {name: make(*name.split()) for name in ("last_k3 last_k7", "last_k1", "last_k7")}


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
    assert send_task(tasks["last_k7"], hub)[1] == both, "the card is one text, however its configurations were exported"
    assert len(repo.history()) == commits
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
