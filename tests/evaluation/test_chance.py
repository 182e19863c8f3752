"""The chance that stands beside the exact match is one of whole answers."""

import numpy as np
import pytest

from hf_posgen.evaluation.measures import chance_of_answers
from hf_posgen.metrics.functional import IGNORE, score
from hf_posgen.tasks import TASKS, build_task, examples


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.generated and not task.continuous])
def test_guesses_are_as_often_right_as_the_chance_says(name):
    """Over the registry: of whole answers, by guessing."""
    task, rng = build_task(name), np.random.default_rng(0)
    cell = task.cells("test")[-1]
    labels = examples(task, 0, "test", cell, 0, 64)[list(task.columns).index("labels")]
    chance = 0.6  # high, so that whole pastes are guessed at all
    counts = score(
        np.where(rng.random((200, *labels.shape)) < chance, labels, -1).reshape(-1, labels.shape[1]),
        np.tile(labels, (200, 1)),
        task.paste,
    )
    expected = chance_of_answers(chance, labels, task.paste)
    assert counts["answers_correct"].sum() / counts["answers"].sum() == pytest.approx(expected, abs=0.02)
    assert expected < chance or not task.paste


def test_nothing_scored_has_no_chance():
    assert chance_of_answers(0.5, np.full((2, 4), IGNORE), True) is None
