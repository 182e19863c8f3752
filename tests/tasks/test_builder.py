"""The same example by every road: direct, prepared, streamed, exported, sharded, resumed."""

import datasets
import pytest

from hf_posgen.tasks import build_task, examples, export_task, load_task, task_tokenizer

PARAMETERS = {"count": 40, "train_count": 64}


def rows(dataset):
    return [(r["length"], r["distance"], r["index"], list(r["input_ids"]), list(r["labels"])) for r in dataset]


@pytest.fixture(autouse=True)
def quiet():
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.mark.parametrize("name", ["fixed_offset", "delay_copy"])
def test_all_roads_agree(name, tmp_path):
    task = build_task(name)
    prepared = load_task(name, split="test", cache_dir=str(tmp_path / "a"), **PARAMETERS)
    direct = []
    for cell in task.cells("test"):
        tokens, labels = examples(task, 0, "test", cell, 0, 40)
        pairs = zip(tokens.tolist(), labels.tolist(), strict=True)
        direct += [(cell.length, cell.distance, i, t, ls) for i, (t, ls) in enumerate(pairs)]
    assert rows(prepared) == direct
    streamed = load_task(name, split="test", streaming=True, cache_dir=str(tmp_path / "a"), **PARAMETERS)
    assert rows(streamed) == direct
    parallel = load_task(name, split="test", num_proc=2, cache_dir=str(tmp_path / "b"), **PARAMETERS)
    assert sorted(rows(parallel)) == sorted(direct)
    parts = [rows(streamed.shard(2, i)) for i in range(2)]
    assert sorted(parts[0] + parts[1]) == sorted(direct)
    folder = export_task(name, tmp_path / "hub", configs=None, **PARAMETERS)
    opened = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "c"))
    assert rows(opened) == direct
    opened = datasets.load_dataset(str(folder), split="test", streaming=True, cache_dir=str(tmp_path / "c"))
    assert rows(opened) == direct


def test_streaming_resumes_where_it_stopped(tmp_path):
    streamed = load_task("fixed_offset", split="test", streaming=True, cache_dir=str(tmp_path), **PARAMETERS)
    iterator, first = iter(streamed), []
    for _ in range(57):
        first.append(next(iterator)["input_ids"])
    state = streamed.state_dict()
    rest = [r["input_ids"] for r in iterator]
    again = load_task("fixed_offset", split="test", streaming=True, cache_dir=str(tmp_path), **PARAMETERS)
    again.load_state_dict(state)
    assert [list(r["input_ids"]) for r in again] == [list(r) for r in rest]


def test_cache_key_holds_every_parameter_and_the_generator_version(tmp_path, monkeypatch):
    from hf_posgen.tasks.fixed_offset import FixedOffset

    def first(**parameters):
        return load_task("fixed_offset", split="test", cache_dir=str(tmp_path), **PARAMETERS, **parameters)[0]

    base = first()
    assert first(offset=2)["distance"] == 2
    assert first(bos=True)["input_ids"][0] == 16
    assert first(seed=1)["input_ids"] != base["input_ids"]
    original = FixedOffset.draw

    def edited(self, rng, count, cell):
        tokens, labels = original(self, rng, count, cell)
        return (tokens + 1) % 16, labels

    monkeypatch.setattr(FixedOffset, "draw", edited)
    monkeypatch.setattr(FixedOffset, "version", 2)
    assert first()["input_ids"] != base["input_ids"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("fixed_offset", "last_k9"), "last_k9.*allowed: last_k3"),
        (("nothing",), "unknown task 'nothing'"),
    ],
)
def test_unknown_names(arguments, words):
    with pytest.raises(ValueError, match=words):
        load_task(*arguments)


def test_unknown_split_parameter_and_type(tmp_path):
    with pytest.raises(ValueError, match="no split 'tset'"):
        load_task("fixed_offset", split="tset")
    with pytest.raises(ValueError, match="did you mean 'symbols'"):
        load_task("fixed_offset", symbol=3)
    with pytest.raises(ValueError, match="count is 'many'"):
        load_task("fixed_offset", count="many")


def test_an_export_never_overwrites(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not empty"):
        export_task("fixed_offset", tmp_path)


def test_tokenizer_names_every_symbol(tmp_path):
    from transformers import AutoTokenizer

    task = build_task({"name": "delay_copy", "kinds": "CS"})
    task_tokenizer(task).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    ids = list(range(task.vocab_size))
    assert tokenizer.decode(ids) == " ".join(task.vocabulary)
    assert tokenizer(" ".join(task.vocabulary))["input_ids"] == ids
