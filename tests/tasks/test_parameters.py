"""Every parameter of every task: what it means, its bounds, and what makes two tasks the same."""

import dataclasses
import inspect

import pytest

from hf_posgen.tasks import TASKS, build_task, generated_tasks, task_digest, task_parameters
from hf_posgen.tasks.core.parameters import type_hints
from hf_posgen.tasks.core.task import Task

FIELDS = [(name, field) for name, cls in TASKS.items() for field in dataclasses.fields(cls)]
BOUNDED = [(name, field) for name, field in FIELDS if field.metadata["least"] is not None]


def over(pairs):
    return pytest.mark.parametrize("name, field", pairs, ids=[f"{name}-{field.name}" for name, field in pairs])


@over(FIELDS)
def test_a_parameter_says_what_it_means_and_how_large_it_may_be(name, field):
    (shown,) = (one for one in task_parameters(name) if one.name == field.name)
    assert shown.meaning and shown.type and not shown.meaning.endswith(".")
    hint = str(type_hints(TASKS[name])[field.name])
    numeric = "int" in hint or "float" in hint
    assert (
        numeric == (field.metadata["least"] is not None) == (field.metadata["most"] is not None) == bool(shown.allowed)
    )
    assert shown.default == (list(field.default) if isinstance(field.default, tuple) else field.default)


@over(BOUNDED)
def test_what_lies_outside_the_bounds_is_refused(name, field):
    least, most = field.metadata["least"], field.metadata["most"]
    values = [
        least - 1,
        most + 1,
        -(10**9),
        100_000_000,
        *([float("nan"), float("inf")] if isinstance(least, float) else []),
    ]
    for value in values:
        with pytest.raises(ValueError, match=f"task '{name}'.*{field.name}.*") as caught:
            build_task({"name": name, field.name: value})
        assert "\n" not in str(caught.value)
        if isinstance(value, int):
            assert f"it must be {least:,} to {most:,}" in str(caught.value)


@over([(name, field) for name, field in BOUNDED if name != "text"])
def test_the_bounds_themselves_take_no_minutes(name, field):
    """They make a task, or are refused beside the other parameters' values."""
    for value in (field.metadata["least"], field.metadata["most"]):
        try:
            build_task({"name": name, field.name: value})
        except ValueError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("text", ["0-100000000", "1-5,7-99999999999", ",".join(["1-60000"] * 3)])
def test_a_text_that_names_too_many_numbers_is_refused_at_once(text):
    with pytest.raises(ValueError, match="names more than"):
        build_task({"name": "delay_copy", "test_distances": text})


@pytest.mark.parametrize("name", generated_tasks())
def test_a_digest_names_what_is_drawn(name):
    """A changed parameter changes it; which cells are evaluated doesn't, nor how a default is written."""
    base = task_digest(name)
    assert base == task_digest(build_task(name)) == task_digest({"name": name}) and len(base) == 8
    assert base not in {task_digest(other) for other in generated_tasks() if other != name}
    changes = {"offset": 2, "delay": 2, "times": "jitter" if name == "irregular_echo" else 2, "symbols": 20}
    own = {field.name for field in dataclasses.fields(TASKS[name])}
    changed = next({"name": name, key: value} for key, value in changes.items() if key in own)
    assert task_digest(changed) != base
    evaluated = {
        "test_windows": [400],
        "test_lengths": [900],
        "test_distances": [33],
        "test_counts": [14],
        "test_lags": [9],
    }
    for key, value in evaluated.items():
        if key in own:
            assert task_digest({"name": name, key: value}) == base, key


def test_a_digest_of_text_is_of_the_tokens(tmp_path):
    found = []
    for name, word in (("one", "cat"), ("other", "cat"), ("third", "dog")):
        path = tmp_path / f"{name}.txt"
        path.write_text("\n\n".join(f"{i}: a {word} and {i} more" for i in range(200)), encoding="utf-8")
        found.append(task_digest({"name": "text", "dataset": str(path), "length": 16}))
    assert found[0] == found[1] != found[2]
    length = {"name": "text", "dataset": str(path), "length": 32}
    assert task_digest(length) != found[2] == task_digest(length | {"length": 16, "test_lengths": [16]})


def test_a_new_generator_is_another_task(monkeypatch):
    base = task_digest("fixed_offset")
    monkeypatch.setattr(TASKS["fixed_offset"], "version", 99)
    assert task_digest("fixed_offset") != base


@pytest.mark.parametrize("name", TASKS)
def test_a_class_states_its_facts(name):
    cls = TASKS[name]
    assert issubclass(cls, Task) and cls.name == name and inspect.getdoc(cls)
    assert cls.metric in ("exact_match", "perplexity", "mean_squared_error")
    assert bool(cls.configs) == cls.generated and (cls.paper is None or len(cls.paper) == 10)
