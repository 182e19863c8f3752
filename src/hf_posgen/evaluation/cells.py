"""A model evaluated cell by cell, in rows. Where it comes from: a run folder (runs.py), or anywhere (targets.py)."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from torch import nn

from ..tasks import SPLITS, Cell, Task, task_digest
from .measuring import Measurement
from .validation import fits

ALL_SPLITS = tuple(split for split in SPLITS if split != "train")
NAMED = 4  # cells that an error lists


@dataclass
class EvaluationTarget:
    """A model that reads and answers in its task's tokens, and how it is measured.

    facts: what stands in each of its rows. about: what is written down beside them. splits: those evaluated unless others
    are named. limit: how many tokens it can hold, with the `prefix` that stands before each sequence; None: any number.
    past_limit: how to evaluate it beyond that, as the end of an error's sentence."""

    name: str
    measurement: Measurement
    facts: dict
    about: dict = field(default_factory=dict)
    splits: tuple[str, ...] = ALL_SPLITS
    limit: int | None = None
    prefix: int = 0
    past_limit: str = ""

    @property
    def model(self) -> nn.Module:
        return self.measurement.model

    @property
    def task(self) -> Task:
        return self.measurement.task

    def with_task(self, task: Task, seed: int | None = None) -> "EvaluationTarget":
        """Return the same model on another task, on sequences drawn with another seed unless that is None."""
        seed = self.measurement.seed if seed is None else seed
        facts = self.facts | task_facts(task) | {"data_seed": seed}
        return replace(self, measurement=replace(self.measurement, task=task, seed=seed), facts=facts)

    def tokens(self, cell: Cell) -> int:
        """Return how many tokens the model reads of a sequence of a cell."""
        return self.prefix + cell.length + self.task.slots()


def task_facts(task: Task) -> dict:
    """Return what every row holds of its task."""
    trained = task.trained_cells()
    lengths = [cell.length for cell in trained]
    distances = [cell.distance for cell in trained if cell.distance is not None]
    return {
        "task": task.name,
        "kind": task.kind,
        "task_digest": task_digest(task),
        "bos": task.bos,
        "shortest_train_length": min(lengths),
        "train_length": max(lengths),
        "train_distance": [min(distances), max(distances)] if distances else None,
    }


def evaluate_target(
    target: EvaluationTarget,
    *,
    count: int | None = None,
    splits: Iterable[str] | None = None,
    lengths: Iterable[int] | None = None,
    free_running: bool = False,
    processes=None,
) -> list[dict]:
    """Return rows for every cell of some splits (the target's own unless given), at some lengths (all), `count` sequences
    each. free_running: also the accuracy where the model reads its own pasted tokens (`predict_freely`).

    Raises `ValueError` before anything is measured: for a split that the task doesn't have, lengths without a cell, and
    cells that the model can't hold, by name; free running where nothing is pasted."""
    task = target.task
    if free_running and not task.paste:
        raise ValueError(f"free running reads pasted tokens back, and task {task.name!r} pastes none: leave it out")
    wanted = wanted_cells(target, splits, lengths)
    fit_on = [("validation", cell) for cell in task.cells("validation")]
    cells = list(dict.fromkeys(fit_on + wanted))
    _refuse_too_long(target, cells)
    count = target.measurement.count if count is None else count
    measurement = replace(target.measurement, count=count, free_running=free_running)
    rows = measurement.rows(cells, processes)
    facts = target.facts | {"fit": fits(task, rows[: len(fit_on)])}
    if processes is None or processes.is_main_process:
        _warn_of_problems(target.name, rows)
    return [facts | row for cell, row in zip(cells, rows, strict=True) if cell in wanted]


def _warn_of_problems(name: str, rows: list[dict]) -> None:
    """Warn, in one sentence, of the cells that hold no number."""
    bad = [row for row in rows if row["problem"]]
    if bad:
        first = f"{bad[0]['split']} {Cell(bad[0]['length'], bad[0]['distance'])}: {bad[0]['problem']}"
        warnings.warn(f"{name}: {len(bad)} of {len(rows)} cells couldn't be measured whole ({first})", stacklevel=3)


def wanted_cells(target: EvaluationTarget, splits, lengths) -> list[tuple[str, Cell]]:
    """Return the (split, cell) pairs that are asked for. Raises `ValueError` where there are none."""
    task = target.task
    for split in splits or ():
        task.cells(split)
    names = [split for split in splits or target.splits if task.splits().get(split)]
    cells = [(split, cell) for split in names for cell in task.cells(split)]
    wanted = [(split, cell) for split, cell in cells if lengths is None or cell.length in lengths]
    if not wanted:
        have = ", ".join(map(str, sorted({cell.length for _, cell in cells})))
        raise ValueError(f"no cell of {', '.join(names)} has one of these lengths; there are: {have}")
    return wanted


def _refuse_too_long(target: EvaluationTarget, cells: list[tuple[str, Cell]]) -> None:
    """Raise `ValueError` that names the cells which the model can't hold."""
    if target.limit is None:
        return
    long = [(split, cell) for split, cell in cells if target.tokens(cell) > target.limit]
    if not long:
        return
    named = ", ".join(f"{split} {cell} ({target.tokens(cell):,})" for split, cell in long[:NAMED])
    more = f" and {len(long) - NAMED} more" if len(long) > NAMED else ""
    if any(split == "validation" for split, _ in long):
        advice = "choose another task, its trained cells are too long"
    else:
        advice = "leave them out with --splits or --lengths"
    raise ValueError(
        f"{target.name} holds {target.limit:,} tokens, and {named}{more} need more: {advice}{target.past_limit}"
    )
