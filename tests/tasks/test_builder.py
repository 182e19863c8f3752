"""The same example by every road: direct, prepared, streamed, sharded, resumed."""

import datasets
import numpy as np
import pytest
from datasets.distributed import split_dataset_by_node

from hf_posgen.tasks import build_task, examples, generated_tasks, load_task
from hf_posgen.tasks.dataset.builder import TaskBuilder

SIZES = {"count": 40, "train_count": 64}


@pytest.fixture(autouse=True)
def quiet():
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def rows(dataset):
    """Rows as comparable tuples; NaN is written as text."""
    return [tuple(repr(np.asarray(value).tolist()) for value in row.values()) for row in dataset]


def direct(task, split, count, seed=0):
    out = []
    for cell in task.cells(split):
        first, second = examples(task, seed, split, cell, 0, count)
        for i in range(count):
            row = (first[i].tolist(), second[i].tolist(), cell.length, cell.distance, i)
            out.append(tuple(repr(value) for value in row))
    return out


@pytest.mark.parametrize("name", generated_tasks())
def test_prepared_and_streamed_agree_with_examples(name, tmp_path):
    task = build_task(name)
    expected = direct(task, "test", 40)
    prepared = load_task(name, split="test", cache_dir=str(tmp_path), **SIZES)
    assert prepared.column_names == [*task.columns, "length", "distance", "index"]
    assert rows(prepared) == expected
    streamed = load_task(name, split="test", streaming=True, cache_dir=str(tmp_path), **SIZES)
    assert rows(streamed) == expected
    train = load_task(name, split="train", streaming=True, cache_dir=str(tmp_path), **SIZES)
    assert rows(train.take(70)) == direct(task, "train", 64)[:70]


@pytest.mark.parametrize("name", ["fixed_offset", "delay_copy", "irregular_echo"])
def test_processes_shards_and_workers_are_disjoint_and_complete(name, tmp_path):
    expected = sorted(direct(build_task(name), "test", 40))
    parallel = load_task(name, split="test", num_proc=2, cache_dir=str(tmp_path), **SIZES)
    assert sorted(rows(parallel)) == expected
    streamed = load_task(name, split="test", streaming=True, cache_dir=str(tmp_path), **SIZES)
    assert streamed.num_shards >= 5
    parts = [rows(streamed.shard(2, i)) for i in range(2)]
    assert parts[0] and parts[1] and sorted(parts[0] + parts[1]) == expected
    ranks = [rows(split_dataset_by_node(streamed, rank, 2)) for rank in range(2)]
    assert ranks[0] and ranks[1] and sorted(ranks[0] + ranks[1]) == expected


def test_workers_of_a_loader_share_the_shards(tmp_path):
    from torch.utils.data import DataLoader

    streamed = load_task("fixed_offset", split="test", streaming=True, cache_dir=str(tmp_path), **SIZES)
    loader = DataLoader(streamed, batch_size=None, num_workers=2)
    seen = sorted((int(r["length"]), int(r["index"])) for r in loader)
    assert seen == [(length, i) for length in range(4, 17) for i in range(40)]


def test_streaming_resumes_where_it_stopped(tmp_path):
    streamed = load_task("fixed_offset", split="test", streaming=True, cache_dir=str(tmp_path), **SIZES)
    iterator = iter(streamed)
    for _ in range(57):
        next(iterator)
    state = streamed.state_dict()
    rest = rows(iterator)
    again = load_task("fixed_offset", split="test", streaming=True, cache_dir=str(tmp_path), **SIZES)
    again.load_state_dict(state)
    assert rows(again) == rest and len(rest) == 13 * 40 - 57


def test_a_rank_resumes_its_own_share(tmp_path):
    streamed = load_task("delay_copy", split="test", streaming=True, cache_dir=str(tmp_path), **SIZES)
    for rank in range(2):
        mine = split_dataset_by_node(streamed, rank, 2)
        whole, iterator = rows(mine), iter(mine)
        for _ in range(17):
            next(iterator)
        again = split_dataset_by_node(streamed, rank, 2)
        again.load_state_dict(mine.state_dict())
        assert rows(again) == whole[17:] and len(whole) > 40


def test_each_epoch_has_its_own_order(tmp_path):
    streamed = load_task("fixed_offset", split="test", streaming=True, cache_dir=str(tmp_path), **SIZES)
    shuffled = streamed.shuffle(seed=3, buffer_size=200)
    orders = []
    for epoch in (0, 1, 0):
        shuffled.set_epoch(epoch)
        orders.append(rows(shuffled))
    assert orders[0] != orders[1] and orders[0] == orders[2] and sorted(orders[0]) == sorted(orders[1])


def test_cache_key_holds_every_parameter_and_the_generator_version(tmp_path, monkeypatch):
    from hf_posgen.tasks.fixed_offset import FixedOffset

    def first(**parameters):
        return load_task("fixed_offset", split="test", cache_dir=str(tmp_path), **SIZES, **parameters)[0]

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


def test_cache_key_holds_derived_defaults_and_no_global_seed(tmp_path):
    def key(**changes):
        spec = {"name": "delay_copy", **changes}
        from hf_posgen.tasks import resolve_task

        parameters = {"task": resolve_task(spec), "config": None, "seed": 0, "count": 1, "train_count": 1}
        return TaskBuilder(parameters=parameters, cache_dir=str(tmp_path)).cache_dir

    np.random.seed(0)
    first = key()
    np.random.seed(1)
    assert key() == first and key(test_windows=[128]) == first, "what the default means is what is keyed"
    assert len({first, key(skip=17), key(test_windows=[256]), key(bos=True), key(gap_blocks=2)}) == 5


@pytest.mark.parametrize(
    "arguments, keywords, words",
    [
        (("nothing",), {}, "unknown task 'nothing'; allowed: fixed_offset"),
        (("fixed_offset", "last_k9"), {}, "last_k9.*allowed: last_k3"),
        (("fixed_offset",), {"split": "tset"}, "no split 'tset'; it has: train"),
        (("fixed_offset",), {"symbol": 3}, "did you mean 'symbols'"),
        (("fixed_offset",), {"offset": None}, "offset is None"),
        (("fixed_offset", "last_k1"), {"offset": "2"}, "offset is '2'; it must be a whole number"),
        (("fixed_offset",), {"offset": 9}, "offset 9, min_length 4"),
        (("fixed_offset",), {"count": "many"}, "count is 'many'; it must be a whole number of at least 1"),
        (("fixed_offset",), {"train_count": 0}, "train_count is 0"),
        (("fixed_offset",), {"seed": -1}, "seed is -1; it must be a whole number of at least 0"),
    ],
)
def test_bad_requests(arguments, keywords, words):
    with pytest.raises(ValueError, match=words):
        load_task(*arguments, **keywords)
