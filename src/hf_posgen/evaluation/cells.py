"""A model evaluated cell by cell, in rows. Where it comes from: a run folder (runs.py), or anywhere (foreign.py)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from torch import nn

from ..run.build import EvaluationConfig
from ..tasks import Cell, Task
from .measuring import measure_cells, validation_summary

FIT = 0.99  # of every trained cell; for streams
FIT_STREAM = 0.95  # of the mean over trained distances
NAMED = 4  # cells that an error lists


@dataclass
class EvaluationTarget:
    """A model that reads and answers in its task's tokens; `facts` stand in each of its rows. limit: how many tokens it can
    hold, with the `prefix` that stands before each sequence; None: any number. further: how to ask it for more, if so."""

    name: str
    model: nn.Module
    task: Task
    facts: dict
    seed: int
    options: EvaluationConfig
    limit: int | None = None
    prefix: int = 0
    further: str = ""


def fits(task: Task, validation_rows: list[dict]) -> bool:
    """Whether a run learned what it was shown: streams by the mean over trained distances, other tasks at every cell; on
    text it must do better than the frequencies of the tokens, or it learned nothing of context."""
    summary = validation_summary(validation_rows)
    if task.natural:
        return summary["nll"] < task.unigram_nats("validation")
    return summary["token_accuracy"] >= FIT_STREAM if task.paste else summary["worst_token_accuracy"] >= FIT


def evaluate_target(
    target: EvaluationTarget,
    *,
    count: int | None = None,
    splits: Iterable[str] | None = None,
    lengths: Iterable[int] | None = None,
    free_running: bool = False,
    processes=None,
) -> list[dict]:
    """Rows for every cell of some splits (its own unless given), at some lengths (all), `count` sequences each.
    free_running: also the accuracy where the model reads its own pasted tokens, not the right ones (`predict_freely`).

    Raises `ValueError` before anything is asked: for a split that the task doesn't have, lengths without a cell, and cells
    that the model can't hold, by name; free running where nothing is pasted."""
    task = target.task
    if free_running and not task.paste:
        raise ValueError(f"free running reads pasted tokens back, and task {task.name!r} pastes none: leave it out")
    for split in splits or ():
        task.cells(split)
    mine = [split for split in splits or target.options.splits if task.splits().get(split)]
    wanted = [
        (split, cell) for split in mine for cell in task.cells(split) if lengths is None or cell.length in lengths
    ]
    if not wanted:
        have = sorted({cell.length for split in mine for cell in task.cells(split)})
        raise ValueError(
            f"no cell of {', '.join(mine)} has one of these lengths; there are: {', '.join(map(str, have))}"
        )
    fit_on = [("validation", cell) for cell in task.cells("validation")]
    both = list(dict.fromkeys(fit_on + wanted))
    _refuse_too_long(target, both)
    count = (target.options if count is None else replace(target.options, count=count)).count
    rows = measure_cells(
        target.model, task, both, target.seed, count, target.options.batch_tokens, processes, free_running
    )
    fit = fits(task, rows[: len(fit_on)])
    return [target.facts | {"fit": fit} | row for pair, row in zip(both, rows, strict=True) if pair in wanted]


def _refuse_too_long(target: EvaluationTarget, wanted: list[tuple[str, Cell]]) -> None:
    needs = lambda cell: target.prefix + cell.length + target.task.slots()  # noqa: E731
    long = [(split, cell) for split, cell in wanted if target.limit is not None and needs(cell) > target.limit]
    if not long:
        return
    named = ", ".join(f"{split} {cell} ({needs(cell):,})" for split, cell in long[:NAMED])
    more = f" and {len(long) - NAMED} more" if len(long) > NAMED else ""
    trained = any(split == "validation" for split, _ in long)
    way = (
        "choose another task, its trained cells are too long"
        if trained
        else "leave them out with --splits or --lengths"
    )
    raise ValueError(f"{target.name} holds {target.limit:,} tokens, and {named}{more} need more: {way}{target.further}")
