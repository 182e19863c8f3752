"""One sequence of a run's task with the answers of its model: three lines that show what the task is."""

import logging
from dataclasses import dataclass

import numpy as np

from ..common.quiet import without_bars, without_hints
from ..metrics.functional import IGNORE
from ..run.folder import RunFolder
from ..tasks import Task, examples

logger = logging.getLogger(__name__)

MOST_PLACES = 80  # of a longer sequence the last ones are shown
NOTHING = "·"  # where no answer is scored


@dataclass(frozen=True)
class Example:
    """A sequence of a split, its tokens as words, one column per place.

    expected, answered: the right tokens and the model's, where they are scored. left_out: how many places before the first
    one shown."""

    split: str
    length: int
    distance: int | None
    read: str
    expected: str
    answered: str
    left_out: int


def example_of(folder: RunFolder) -> Example | None:
    """Return the first test sequence of a finished run, with its model's answers.

    None where there is none to show: for text, which may be private, for tasks without words, and where the model doesn't
    open, which the log says."""
    from ..evaluation.runs import load_run

    if not folder.is_finished:
        return None
    try:
        task = folder.run().built_task
        if task.continuous or not task.generated:
            return None
        import torch

        with without_bars(), without_hints():
            _, _, model = load_run(folder.path, torch.device("cpu"))
        return _example(task, model, folder.config_tree()["seed"])
    except Exception as error:  # a card can be written without: what is wrong with the model is told where it is used
        logger.warning("the card of %s shows no example: %s", folder.path, " ".join(str(error).split()))
        return None


def _example(task: Task, model, seed: int) -> Example:
    import torch

    from ..evaluation.scoring import predict

    cell = task.cells("test")[0]
    arrays = dict(zip(task.columns, examples(task, seed, "test", cell, 0, 1), strict=True))
    predictions, _ = predict(model, **{name: torch.from_numpy(array) for name, array in arrays.items()})
    scored = arrays["labels"][0] != IGNORE
    words = [[_word(task, token) for token in arrays["input_ids"][0]]]
    for row in (arrays["labels"][0], predictions[0].numpy()):
        words.append([_word(task, token) if here else NOTHING for token, here in zip(row, scored, strict=True)])
    start = max(0, len(scored) - MOST_PLACES)
    places = [[word.rjust(max(map(len, place))) for word in place] for place in zip(*words, strict=True)]
    lines = [" ".join(row[start:]) for row in zip(*places, strict=True)]
    return Example("test", cell.length, cell.distance, *lines, left_out=start)


def _word(task: Task, token: np.integer) -> str:
    return task.vocabulary[token] if 0 <= token < len(task.vocabulary) else f"<{token}>"
