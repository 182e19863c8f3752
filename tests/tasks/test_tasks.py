"""Contract tests over the registry of tasks."""

import json

import numpy as np
import pytest

from hf_posgen.tasks import (
    IGNORE,
    TASKS,
    Cell,
    TokenTask,
    build_task,
    config_spec,
    examples,
    generated_tasks,
    resolve_task,
    train_cell,
)
from hf_posgen.tasks.core.cells import HELD_OUT, SPLITS
from hf_posgen.tasks.core.examples import block_size

ALL = [(name, config) for name in TASKS for config in TASKS[name].configs]
TOKEN = [pair for pair in ALL if not TASKS[pair[0]].continuous]
REAL = [pair for pair in ALL if TASKS[pair[0]].continuous]


def over(pairs):
    return pytest.mark.parametrize("name, config", pairs, ids=["-".join(pair) for pair in pairs])


def some_cells(task, longest=300):
    """The first and last cell of each split; long ones only where there are no others."""
    cells = {cell for mine in task.splits().values() for cell in (*mine[:1], *mine[-1:])}
    short = [cell for cell in cells if cell.length <= longest]
    return sorted(short or [min(cells)])


def test_every_task_has_configurations():
    assert all(cls.configs for cls in generated_tasks().values())
    assert all(cls.name == name and cls.__doc__ for name, cls in TASKS.items())


@over(TOKEN)
def test_shapes_labels_and_oracle(name, config):
    """The oracle, which is written from the description, scores 1.0 on every target that can be known."""
    for bos in (False, True):
        task = build_task(config_spec(name, config, bos=bos))
        for cell in some_cells(task):
            tokens, labels, *_ = task.sample(np.random.default_rng(0), 12, cell)
            assert tokens.shape == labels.shape == (12, cell.length + task.slots())
            assert tokens.dtype == labels.dtype == np.int64
            assert tokens.min() >= 0 and tokens.max() < task.vocab_size
            assert bool((tokens[:, 0] == task.bos_token_id).all()) == bos
            scored = labels != IGNORE
            assert scored.any(), f"{cell}: nothing is scored"
            assert not scored[:, 0].any(), "the first token can't be predicted"
            hits, known = 0, 0
            for row, answers in zip(tokens, labels, strict=True):
                answer = task.oracle(row.tolist())
                for place in np.flatnonzero(answers != IGNORE):
                    known += place in answer
                    hits += answer.get(place) == answers[place]
            assert hits == known
            assert known == scored.sum() or task.ceiling(cell) < 1.0


@over(TOKEN)
def test_oracle_reads_only_what_comes_before(name, config):
    task = build_task(config_spec(name, config))
    cell = some_cells(task)[-1]
    tokens, labels, *_ = task.sample(np.random.default_rng(1), 6, cell)
    for row, answers in zip(tokens.tolist(), labels, strict=True):
        for place in np.flatnonzero(answers != IGNORE)[:3]:
            changed = row[:place] + [0] * (len(row) - place)
            assert task.oracle(changed).get(place) == task.oracle(row).get(place)


@over(
    [pair for pair in TOKEN if pair[1] != "echo_of_the_cue"]
)  # its answer is the distance, one and the same in a cell
def test_later_tokens_tell_nothing(name, config):
    """No look-up table from a token after the first answer to that answer is better than chance."""
    task = build_task(config_spec(name, config))
    cell = min(task.cells("test"), key=lambda c: (c.length > 300, -(c.distance or 0)))
    tokens, labels, *_ = task.sample(np.random.default_rng(2), 3000 if cell.length < 300 else 200, cell)
    rows = np.flatnonzero((labels != IGNORE).any(1))
    places = (labels[rows] != IGNORE).argmax(1)
    for later in (1, 2, 3):
        inside = places + later < tokens.shape[1]
        if inside.sum() < 1000:
            continue
        seen = tokens[rows[inside], places[inside] + later]
        answer = labels[rows[inside], places[inside]]
        half = len(seen) // 2
        table = np.zeros((task.vocab_size, task.vocab_size))
        np.add.at(table, (seen[:half], answer[:half]), 1)
        hits = (table.argmax(1)[seen[half:]] == answer[half:]).mean()
        assert hits < task.chance(cell) + 0.05


@over(REAL)
def test_real_tasks(name, config):
    task = build_task(config_spec(name, config))
    for cell in some_cells(task):
        inputs, targets = task.sample(np.random.default_rng(0), 12, cell)
        assert inputs.dtype == targets.dtype == np.float32
        assert inputs.shape[:2] == targets.shape == (12, cell.length) and np.isfinite(inputs).all()
        assert np.isfinite(targets).any()
        for row, answers in zip(inputs, targets, strict=True):
            known = task.oracle(row)
            assert known == {t: float(answers[t]) for t in np.flatnonzero(np.isfinite(answers))}
            cut = cell.length // 2
            assert task.oracle(row[:cut]) == {t: x for t, x in known.items() if t < cut}, "it reads the future"
        assert task.chance(cell) == 1.0 and task.ceiling(cell) == 0.0
    with pytest.raises(ValueError, match="real-valued: it has no vocabulary"):
        _ = task.vocab_size


@over(ALL)
def test_example_i_is_the_same_whoever_asks(name, config):
    task = build_task(config_spec(name, config))
    cell = some_cells(task)[0]
    size = block_size(cell.length)
    whole = examples(task, 3, "test", cell, 0, size + 6)
    for start, stop in ((0, 1), (size - 1, size + 2), (size, size + 6), (5, size + 1)):
        part = examples(task, 3, "test", cell, start, stop)
        for mine, all_ in zip(part, whole, strict=True):
            assert np.array_equal(mine, all_[start:stop], equal_nan=task.continuous)
    part[0][:] = 0  # what a caller does to its copy reaches nobody else
    assert np.array_equal(examples(task, 3, "test", cell, start, stop)[0], whole[0][start:stop])
    for split, seed in (("validation", 3), ("test", 4)):
        assert not np.array_equal(examples(task, seed, split, cell, 0, 8)[0], whole[0][:8])
    with pytest.raises(ValueError, match="0 <= start < stop"):
        examples(task, 0, "test", cell, 4, 4)


@over(ALL)
def test_splits_keep_their_promises(name, config):
    task = build_task(config_spec(name, config))
    splits, trained = task.splits(), task.trained_cells()
    assert set(splits) <= set(SPLITS) and splits["train"] and splits["validation"] == splits["test"]
    lengths, distances = {c.length for c in trained}, {c.distance for c in trained}
    expected = {
        "longer": {(False, True)},
        "farther": {(True, False)},
        "nearer": {(True, False)},
        "between": {(True, False), (False, True), (False, False)},
        "both": {(False, False)},
    }
    for split, cells in splits.items():
        assert len(set(cells)) == len(cells)
        for cell in cells:
            task.check_cell(cell)
            assert (cell in trained) == (split not in HELD_OUT)
            assert (cell.length in lengths, cell.distance in distances) in expected.get(split, {(True, True)})
    known = {c.distance for c in trained} - {None}
    assert all(cell.distance > max(known) for cell in splits.get("farther", ()))
    assert all(cell.distance < min(known) for cell in splits.get("nearer", ()))
    assert task.max_tokens() == max(c.length for cells in splits.values() for c in cells) + task.slots()
    assert task.max_tokens([Cell(7, 3)]) == 7 + task.slots()


@over(ALL)
def test_training_draws_only_trained_distances(name, config):
    """What a mixed cell draws is what `trained_cells` says."""
    task = build_task(config_spec(name, config))
    for cell in task.cells("train")[:1]:
        if cell.distance is None and hasattr(task, "distances"):
            drawn = set(task.distances(np.random.default_rng(0), 20000, cell).tolist())
            assert drawn <= {c.distance for c in task.trained_cells()}


@over(TOKEN)
def test_chance_ceiling_and_baselines(name, config):
    task = build_task(config_spec(name, config))
    cell = task.cells("test")[0]
    assert 0 < task.chance(cell) < task.ceiling(cell) <= 1
    assert all(0 <= value <= 1 for value in task.baselines(cell).values())
    if not (name == "cued_delay" and task.answer == "cue"):
        assert "bag_of_words" in task.baselines(cell)
    if task.paste and name != "cued_delay":
        assert {"ngram_1", "ngram_2"} <= set(task.baselines(cell))


@over(ALL)
def test_resolve_completes_and_is_stable(name, config):
    spec = resolve_task(config_spec(name, config))
    assert json.loads(json.dumps(spec)) == spec == resolve_task(spec)
    assert None not in spec.values()
    assert build_task(spec) == build_task(config_spec(name, config))
    assert hash(build_task(spec)) == hash(build_task(config_spec(name, config)))


def test_a_spec_may_name_the_configuration_that_it_changes():
    named = {"name": "delay_copy", "config": "full_0_5", "bos": True}
    assert resolve_task(named) == resolve_task(config_spec("delay_copy", "full_0_5", bos=True))


def test_training_draws_each_cell():
    task = build_task("fixed_offset")
    drawn = [train_cell(task, 0, step) for step in range(1300)]
    counts = [drawn.count(cell) for cell in task.cells("train")]
    assert min(counts) > 60 and max(counts) < 150
    assert drawn[:20] != [train_cell(task, 1, s) for s in range(20)]
    assert drawn[:20] == [train_cell(task, 0, s) for s in range(20)]


@pytest.mark.parametrize(
    "spec, words",
    [
        ("fixed_ofset", ["fixed_ofset", "did you mean 'fixed_offset'"]),
        ({"name": "fixed_offset", "ofset": 3}, ["ofset", "did you mean 'offset'"]),
        ({"name": "fixed_offset", "offset": "3"}, ["offset", "'3'", "whole number"]),
        ({"name": "fixed_offset", "offset": True}, ["offset", "True", "whole number"]),
        ({"name": "fixed_offset", "offset": None}, ["offset", "None", "whole number"]),
        ({"name": "fixed_offset", "offset": 2.0}, ["offset", "2.0", "whole number"]),
        ({"name": "fixed_offset", "bos": 1}, ["bos", "1", "true or false"]),
        ({"name": "fixed_offset", "offset": 9}, ["offset 9", "min_length"]),
        ({"name": "fixed_offset", "query": "first"}, ["first", "last, every"]),
        ({"name": "fixed_offset", "test_lengths": [16, 32]}, ["L16 d3", "training sees"]),
        ({"name": "fixed_offset", "test_lengths": [17.5]}, ["test_lengths", "17.5", "whole numbers"]),
        ({"name": "fixed_offset", "live": 2, "query": "every"}, ["live", "last"]),
        ({"name": "unique_copy", "max_count": 65}, ["max_count 65", "symbols 64"]),
        ({"name": "unique_copy", "max_count": 40}, ["string of 40", "81", "64"]),
        ({"name": "unique_copy", "layout": "tight", "test_counts": [2]}, ["test_counts", "tight", "4"]),
        ({"name": "stride_copy", "stride": 0}, ["stride", "0"]),
        ({"name": "repeat_copy", "times": 0}, ["times", "0"]),
        ({"name": "cued_delay", "digits": 1, "d_max": 10}, ["d_max 10", "9"]),
        ({"name": "cued_delay", "window": 3}, ["window 3", "too short"]),
        ({"name": "induction", "d_max": 63}, ["d_max 63", "62"]),
        ({"name": "induction", "test_distances": [99]}, ["distance 99", "64", "1 to 62"]),
        ({"name": "induction", "probes": [40]}, ["probes [40]"]),
        ({"name": "multi_query_recall", "pairs": 40}, ["pairs 40", "keys 32"]),
        ({"name": "selective_copying", "copied": 0}, ["copied", "0"]),
        ({"name": "linear_rnn_delay", "delay": 16}, ["delay 16", "min_length 16"]),
        ({"name": "linear_rnn_delay", "bos": True}, ["bos", "allowed"]),
        ({"name": "irregular_echo", "lag_max": 64}, ["lag_max 64", "window 64"]),
        ({"name": "delay_copy", "config": "full_0_6"}, ["full_0_6", "did you mean 'full_0_"]),
        ({"name": "delay_copy", "config": ["full_0_5"]}, ["configuration", "full_0_5"]),
        ({"offset": 3}, ["name"]),
        (7, ["7"]),
    ],
)
def test_bad_specs_say_what_was_given_and_what_is_allowed(spec, words):
    with pytest.raises(ValueError) as error:
        build_task(spec)
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


@over(ALL)
def test_impossible_cells_are_refused(name, config):
    task = build_task(config_spec(name, config))
    rng = np.random.default_rng(0)
    for cell in (Cell(2, 900), Cell(task.cells("test")[0].length, 100_000)):
        with pytest.raises(ValueError, match=name):
            task.sample(rng, 1, cell)
    with pytest.raises(ValueError, match=r"no split 'tset'; it has: train, validation"):
        task.cells("tset")


def test_token_tasks_have_their_control_tokens():
    for name, cls in generated_tasks().items():
        if issubclass(cls, TokenTask):
            task = build_task(name)
            assert len(set(task.vocabulary)) == task.vocab_size
            assert task.vocabulary[task.bos_token_id] == "[BOS]" and task.vocabulary[task.pad_token_id] == "[PAD]"
            assert task.eos_token_id is None
