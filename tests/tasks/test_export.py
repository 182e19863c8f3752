"""Exported folders: opened by `datasets` alone, counted, checked, whole or not there."""

import hashlib
import os
import subprocess
import sys
import textwrap

import datasets
import numpy as np
import pytest
import yaml

from hf_posgen.tasks import (
    SPLITS,
    TASKS,
    build_task,
    config_spec,
    count_duplicates,
    dataset_card,
    examples,
    export_task,
    generated_tasks,
    resolve_task,
)
from hf_posgen.tasks.dataset.card import as_markdown, as_text
from hf_posgen.tasks.dataset.published import benchmark, benchmark_file, repository

from .test_builder import direct, quiet, rows  # noqa: F401

GENERATED = list(generated_tasks())
SIZES = {"count": 40, "train_count": 64}


@pytest.mark.parametrize("name", GENERATED)
def test_load_dataset_opens_what_was_exported(name, tmp_path):
    config = next(iter(TASKS[name].configs))
    folder = export_task(name, tmp_path / "hub", configs=[config], **SIZES)
    task = build_task(name)
    for streaming in (False, True):
        opened = datasets.load_dataset(
            str(folder), config, split="test", streaming=streaming, cache_dir=str(tmp_path / "cache")
        )
        assert rows(opened) == direct(task, "test", 40)
    whole = datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in whole.items()} == {
        split: len(cells) * (64 if split == "train" else 40) for split, cells in task.splits().items() if cells
    }


@pytest.mark.parametrize("name", ["fixed_offset", "irregular_echo"])
def test_the_files_are_plain_parquet(name, tmp_path):
    """Without the features that this version of datasets writes into a schema, and 3.6 can't read: the files and the card
    say it all, to datasets as to any other reader."""
    import pyarrow.parquet as pq

    folder = export_task(name, tmp_path / "hub", configs=[next(iter(TASKS[name].configs))], **SIZES)
    for path in folder.rglob("*.parquet"):
        assert b"huggingface" not in (pq.read_schema(path).metadata or {})
    files = str(next(folder.rglob("test-*.parquet")))
    alone = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "alone"))
    carded = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "carded"))
    assert alone.features == carded.features and rows(alone) == rows(carded)


def test_configurations_splits_files_and_checksums(tmp_path):
    folder = export_task("fixed_offset", tmp_path / "hub", configs=["last_k3", "last_k1"], **SIZES)
    card = (folder / "README.md").read_text()
    head = yaml.safe_load(card.split("---")[1])
    assert [c["config_name"] for c in head["configs"]] == ["last_k3", "last_k1"]
    assert [c.get("default", False) for c in head["configs"]] == [True, False]
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))
    assert files[:4] == [f"last_k1/{s}-00000-of-00001.parquet" for s in ("longer", "test", "train", "validation")]
    for file in files:
        digest = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        assert f"| {file} |" in card and digest in card
    assert datasets.get_dataset_config_names(str(folder)) == ["last_k3", "last_k1"]
    assert "the headline is `last_k3_longer`" in card


@pytest.mark.parametrize("name", GENERATED)
def test_a_benchmark_has_one_headline_and_one_name(name):
    """The headline is the first task of eval.yaml, and named once there and on the card; the name has no underscore."""
    configs = {
        config: [s for s in SPLITS if build_task(config_spec(name, config)).splits().get(s)]
        for config in TASKS[name].configs
    }
    told, card = benchmark_file(repository(name), configs), dataset_card(name)
    tasks = yaml.safe_load(told)["tasks"]
    ids = [task["id"] for task in tasks]
    assert len(set(ids)) == len(ids) == sum(len(splits) - 1 for splits in configs.values())
    assert all(task["id"] == f"{task['config']}_{task['split']}" and task["split"] != "train" for task in tasks)
    named = [one for one in ids if f"Headline task: {one}." in told.replace("\n  ", " ")]
    assert named == ids[:1] and f"the headline is `{ids[0]}`" in card
    hub = f"posgen-{name.replace('_', '-')}"
    assert yaml.safe_load(told)["name"] == repository(name) == hub and f'load_dataset("<owner>/{hub}", ' in card
    assert benchmark(resolve_task(name), "me")[0] == f"me/{hub}"
    if "_" in name:
        assert f"posgen-{name}" not in card + told, "one name, with hyphens, everywhere"


def test_a_big_split_has_several_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_posgen.tasks.dataset.export.SHARD_TOKENS", 300_000)
    folder = export_task("fixed_offset", tmp_path / "hub", configs=["last_k3"], count=400, train_count=400)
    names = sorted(path.name for path in folder.glob("last_k3/longer-*"))
    assert names == [f"longer-{i:05d}-of-00003.parquet" for i in range(3)]
    opened = datasets.load_dataset(str(folder), split="longer", cache_dir=str(tmp_path / "cache"))
    assert [(r["length"], r["index"]) for r in opened] == [
        (n, i) for n in (17, 32, 48, 128, 512, 1024) for i in range(400)
    ]


def test_exporting_twice_gives_the_same_bytes(tmp_path):
    folders = [export_task("induction", tmp_path / str(i), configs=["small_64"], **SIZES) for i in range(2)]
    first, second = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert first == second and len(first) > 4


def test_a_spec_is_exported_under_its_own_name(tmp_path):
    spec = {"name": "fixed_offset", "offset": 2, "test_lengths": [20]}
    folder = export_task(spec, tmp_path / "hub", **SIZES)
    (config,) = datasets.get_dataset_config_names(str(folder))
    assert config.startswith("custom_")
    named = export_task(config_spec("fixed_offset", "last_k7"), tmp_path / "named", **SIZES)
    assert datasets.get_dataset_config_names(str(named)) == ["last_k7"]


def test_offline_from_the_cache_and_without_hf_posgen(tmp_path):
    """`datasets` alone opens the folder, and opens it again without the network."""
    folder = export_task("fixed_offset", tmp_path / "hub", configs=["last_k3"], **SIZES)
    code = f"""
    import sys
    sys.modules["hf_posgen"] = None
    from datasets import load_dataset
    print(load_dataset({str(folder)!r}, "last_k3", split="test")[0]["input_ids"])
    """
    out = []
    for offline in ("0", "1"):
        environment = os.environ | {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": offline}
        command = [sys.executable, "-c", textwrap.dedent(code)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        out.append(done.stdout.splitlines()[-1])
    task = build_task("fixed_offset")
    assert out == [str(examples(task, 0, "test", task.cells("test")[0], 0, 1)[0][0].tolist())] * 2


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("nothing",), "unknown task 'nothing'"),
        (("fixed_offset", ["last_k9"]), "last_k9.*allowed: last_k3"),
        (({"name": "fixed_offset"}, ["last_k3"]), "configurations belong to a task given by its name"),
        (({"name": "fixed_offset", "offset": 99},), "offset 99"),
    ],
)
def test_bad_requests_leave_nothing_behind(arguments, words, tmp_path):
    task, *configs = arguments
    with pytest.raises(ValueError, match=words):
        export_task(task, tmp_path / "hub", configs=configs[0] if configs else None)
    with pytest.raises(ValueError, match="count is 0"):
        export_task("fixed_offset", tmp_path / "hub", count=0)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_export_leaves_nothing_behind(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hf_posgen.tasks.dataset.export.count_duplicates", stop)
    with pytest.raises(KeyboardInterrupt):
        export_task("fixed_offset", tmp_path / "hub", configs=["last_k3"], **SIZES)
    assert list(tmp_path.iterdir()) == []


def test_an_export_never_overwrites(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not empty"):
        export_task("fixed_offset", tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["fixed_offset", "repeat_copy", "linear_rnn_delay"])
def test_duplicates_are_counted(name):
    """Against sets of whole sequences."""
    task = build_task(name)
    found = count_duplicates(task, seed=1, count=50, train_count=300)
    trained = {
        (cell.length, row.tobytes())
        for cell in task.cells("train")
        for row in examples(task, 1, "train", cell, 0, 300)[0]
    }
    for split, cells in task.splits().items():
        if split != "train" and cells:
            same = [
                (cell.length, row.tobytes()) in trained
                for cell in cells
                for row in examples(task, 1, split, cell, 0, 50)[0]
            ]
            assert found[split] == sum(same)
    if name == "repeat_copy":
        assert found["test"] > 50 and found["longer"] == 0
    if name == "linear_rnn_delay":
        assert set(found.values()) == {0}


@pytest.mark.parametrize("name", GENERATED)
def test_cards_in_the_repository_are_up_to_date(name, request):
    path = request.config.rootpath / "datasets" / name / "README.md"
    assert path.read_text() == dataset_card(name), "run: python scripts/build_datasets.py cards"


def test_no_code_shadows_the_library(request):
    folder = request.config.rootpath / "datasets"
    assert not [path for path in folder.rglob("*") if path.suffix == ".py"]
    assert not [path for path in folder.rglob("*.md") if "trust_remote_code" in path.read_text()], "nothing to trust"
    assert datasets.__version__


def test_card_texts():
    assert as_text([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10" and as_text([]) == "none"
    assert as_markdown("One.\n\n    a b c\n    d\n\nTwo.") == "One.\n\n```\n    a b c\n    d\n```\n\nTwo."


@pytest.mark.parametrize("name", [name for name in GENERATED if not TASKS[name].continuous])
def test_tokenizer_names_every_symbol(name, tmp_path):
    from transformers import AutoTokenizer

    task = build_task(name)
    task.build_tokenizer().save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    ids = list(range(task.vocab_size))
    assert tokenizer.decode(ids) == " ".join(task.vocabulary)
    assert tokenizer(" ".join(task.vocabulary))["input_ids"] == ids
    assert (tokenizer.bos_token_id, tokenizer.pad_token_id) == (task.bos_token_id, task.pad_token_id)
    tokens = examples(task, 0, "test", task.cells("test")[0], 0, 1)[0][0]
    assert np.array_equal(tokenizer(tokenizer.decode(tokens))["input_ids"], tokens)


@pytest.mark.slow
def test_memory_stays_flat(tmp_path):
    """Ten times the tokens (10 million) take no more memory to export or to stream."""
    code = """
    import resource, sys
    from hf_posgen.tasks import export_task, load_task
    count, folder = int(sys.argv[1]), sys.argv[2]
    export_task("delay_copy", folder + "/hub", configs=["full_15_25"], count=2, train_count=count)
    stream = load_task("delay_copy", "full_15_25", split="train", streaming=True, train_count=count, cache_dir=folder)
    seen = sum(len(batch["index"]) for batch in stream.iter(batch_size=500))
    assert seen == count
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    """
    peaks = []
    for count in (3_907, 39_063):
        command = [sys.executable, "-c", textwrap.dedent(code), str(count), str(tmp_path / str(count))]
        (tmp_path / str(count)).mkdir()
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        peaks.append(float(done.stdout.split()[-1]))
    assert peaks[1] < peaks[0] + 60, f"peaks {peaks} MiB"


def test_a_card_is_a_function_of_the_manifests_beside_the_data(tmp_path):
    """Read back from the files, they give the exported card again; a file that is none is named."""
    from hf_posgen.tasks.dataset.manifest import MANIFEST, read_manifest

    folder = export_task("repeat_copy", tmp_path / "hub", configs=list(TASKS["repeat_copy"].configs)[:2], **SIZES)
    read = {path.parent.name: read_manifest(path.read_text(), path.name) for path in folder.glob(f"*/{MANIFEST}")}
    manifests = {config: read[config] for config in list(TASKS["repeat_copy"].configs)[:2]}
    assert dataset_card("repeat_copy", manifests) == (folder / "README.md").read_text()
    assert 'load_dataset("me/other"' in dataset_card("repeat_copy", manifests, "me/other")
    for text in ("", "[]", '{"task": {}}'):
        with pytest.raises(ValueError, match="^there is no manifest of an exported configuration"):
            read_manifest(text, "there")
