"""Contract tests over the registry of tasks."""

import numpy as np
import pytest

from hf_posgen.tasks import CONFIGS, IGNORE, TASKS, Cell, build_task, config_spec, examples, resolve_task, train_cell
from hf_posgen.tasks.cells import HELD_OUT, SPLITS

ALL = [(name, config) for name in TASKS for config in CONFIGS[name]]
every_config = pytest.mark.parametrize("name, config", ALL, ids=["-".join(pair) for pair in ALL])


def some_cells(task):
    """The first and last cell of each split, none longer than 300 tokens."""
    cells = {cell for mine in task.splits().values() for cell in (*mine[:1], *mine[-1:])}
    return sorted((c for c in cells if c.length <= 300), key=str)


def test_every_task_has_configurations():
    assert set(CONFIGS) == set(TASKS)


@every_config
def test_shapes_labels_and_oracle(name, config):
    for bos in (False, True):
        task = build_task(config_spec(name, config, bos=bos))
        for cell in some_cells(task):
            tokens, labels = task.sample(np.random.default_rng(0), 20, cell)
            assert tokens.shape == labels.shape == (20, cell.length + task.slots())
            assert tokens.dtype == labels.dtype == np.int64
            assert tokens.min() >= 0 and tokens.max() < task.vocab_size
            scored = labels != IGNORE
            assert scored.any(), f"{cell}: nothing is scored"
            assert not scored[:, 0].any(), "the first token can't be predicted"
            assert labels[scored].max() < task.data_symbols
            for row, answers in zip(tokens, labels, strict=True):
                known = task.oracle(row.tolist())
                for place in np.flatnonzero(answers != IGNORE):
                    reachable = place in known or getattr(task, "unreachable", "") == "scored"
                    assert reachable and known.get(place, answers[place]) == answers[place]
            assert bool((tokens[:, 0] == task.bos_token_id).all()) == bos


@every_config
def test_example_i_is_the_same_whoever_asks(name, config):
    task = build_task(config_spec(name, config))
    cell = task.cells("test")[0]
    whole = examples(task, 3, "test", cell, 0, 70)
    for start, stop in ((0, 1), (31, 34), (40, 70)):
        part = examples(task, 3, "test", cell, start, stop)
        assert np.array_equal(part[0], whole[0][start:stop]) and np.array_equal(part[1], whole[1][start:stop])
    for other in (("validation", 3), ("test", 4)):
        assert not np.array_equal(examples(task, other[1], other[0], cell, 0, 8)[0], whole[0][:8])


@every_config
def test_splits_keep_their_promises(name, config):
    task = build_task(config_spec(name, config))
    splits, trained = task.splits(), task.trained_cells()
    assert set(splits) <= set(SPLITS)
    lengths, distances = {c.length for c in trained}, {c.distance for c in trained}
    for split, cells in splits.items():
        assert len(set(cells)) == len(cells)
        for cell in cells:
            task.check_cell(cell)
            assert (cell in trained) == (split not in HELD_OUT)
            seen = cell.length in lengths, cell.distance in distances
            expected = {
                "longer": {(False, True)},
                "farther": {(True, False)},
                "nearer": {(True, False)},
                "between": {(True, False), (False, True)},
                "both": {(False, False)},
            }
            assert seen in expected.get(split, {(True, True)})


@every_config
def test_labels_leak_nothing_to_later_tokens(name, config):
    """The answer at t is scored on the logits at t - 1: what comes after may not be needed, and nothing before t - 1
    may be the answer's own slot. A guess from the token that stands in the slot itself is never what is scored."""
    task = build_task(config_spec(name, config))
    cell = next(c for c in task.cells("test") if c.length < 300)
    tokens, labels = task.sample(np.random.default_rng(1), 400, cell)
    rows, places = np.nonzero(labels != IGNORE)
    for later in (1, 2):
        inside = places + later < tokens.shape[1]
        hits = tokens[rows[inside], places[inside] + later] == labels[rows[inside], places[inside]]
        if len(hits) > 200:
            assert hits.mean() < task.chance(cell) + 0.05


@every_config
def test_chance_ceiling_and_baselines(name, config):
    task = build_task(config_spec(name, config))
    cell = task.cells("test")[0]
    assert 0 < task.chance(cell) < task.ceiling(cell) <= 1
    for value in task.baselines(cell).values():
        assert 0 <= value <= 1


def test_training_draws_each_cell():
    task = build_task("fixed_offset")
    drawn = {train_cell(task, 0, step) for step in range(300)}
    assert drawn == set(task.cells("train"))
    assert [train_cell(task, 0, s) for s in range(20)] != [train_cell(task, 1, s) for s in range(20)]


@pytest.mark.parametrize(
    "spec, words",
    [
        ("fixed_ofset", ["fixed_ofset", "did you mean 'fixed_offset'"]),
        ({"name": "fixed_offset", "ofset": 3}, ["ofset", "did you mean 'offset'"]),
        ({"name": "fixed_offset", "offset": "3"}, ["offset", "'3'", "int"]),
        ({"name": "fixed_offset", "offset": True}, ["offset", "True", "int"]),
        ({"name": "fixed_offset", "offset": None}, ["offset", "None", "int"]),
        ({"name": "fixed_offset", "offset": 9}, ["offset 9", "min_length"]),
        ({"name": "fixed_offset", "query": "first"}, ["first", "last, every"]),
        ({"name": "fixed_offset", "test_lengths": [16, 32]}, ["L16 d3", "training sees"]),
        ({"name": "delay_copy", "d_max": 90}, ["window of 64", "delay of 90"]),
        ({"name": "delay_copy", "kinds": "X"}, ["X", "C, S, CS"]),
        ({"offset": 3}, ["name"]),
    ],
)
def test_bad_specs_say_what_was_given_and_what_is_allowed(spec, words):
    with pytest.raises(ValueError) as error:
        build_task(spec)
    for word in words:
        assert word in str(error.value)


def test_impossible_cells_are_refused():
    with pytest.raises(ValueError, match="delay of 60 does not fit a window of 64"):
        build_task("delay_copy").sample(np.random.default_rng(0), 1, Cell(64, 60))
    with pytest.raises(ValueError, match="offset 3 is longer"):
        build_task("fixed_offset").sample(np.random.default_rng(0), 1, Cell(3, 3))
    with pytest.raises(ValueError, match="no split 'farther'; it has: train"):
        build_task("fixed_offset").cells("farther")


def test_resolve_completes_and_is_stable():
    spec = resolve_task("delay_copy")
    assert resolve_task(spec) == spec and spec["d_max"] == 8
    assert build_task(spec) == build_task("delay_copy")
