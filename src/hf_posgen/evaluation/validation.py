"""How a model does on what training showed: what decides on stopping, on the best state, and on fit."""

import math

import numpy as np
from torch import nn

from ..run.schema import RunConfig
from ..tasks import Cell, Task
from .measures import perplexity
from .measuring import Measurement, evaluating, gathered, share_of
from .scoring import NotANumber

RATIOS = {  # what validation shows: (counted, of how many)
    "exact_match": ("answers_correct", "answers"),
    "token_accuracy": ("tokens_correct", "tokens_scored"),
    "nll": ("nats", "tokens_scored"),
}


def validate(model: nn.Module, task: Task, run: RunConfig, processes=None) -> dict:
    """Return the means over the trained cells, and the worst cell: what training looks at (no intervals, no baselines).

    Raises `NotANumber`, in every process, where the model's logits are no numbers in one of them."""
    measurement = Measurement(model, task, run.seed, run.train.validation_count, run.evaluation.batch_tokens)
    cells, rows = task.cells("validation"), []
    with evaluating(model):
        for i in share_of(cells, processes):
            rows.append(_validation_row(measurement, cells[i]))
    rows = gathered(rows, processes)
    for row in rows:
        if "problem" in row:
            raise NotANumber(f"validation: {row['problem']}")
    return validation_summary(rows)


def _validation_row(measurement: Measurement, cell: Cell) -> dict:
    """Return the ratios of a cell, or its problem where the logits are no numbers: an error in one process would leave the
    others waiting."""
    try:
        counts = measurement.scores("validation", cell).sequences
    except NotANumber as error:
        return {"problem": f"{error} ({cell})"}
    row = {key: float(counts[a].sum() / max(1, counts[b].sum())) for key, (a, b) in RATIOS.items()}
    if not math.isfinite(row["nll"]):
        return {"problem": f"a scored token has no probability at all ({cell})"}
    if measurement.task.metric == "perplexity":
        row |= {"exact_match": None, "perplexity": perplexity(row["nll"])}
    return row


def validation_summary(rows: list[dict]) -> dict:
    """Return the means over the cells, of what every cell has as a finite number, and the worst cell."""
    keys = [key for key in (*RATIOS, "perplexity") if all(_is_number(row.get(key)) for row in rows)]
    summary = {key: float(np.mean([row[key] for row in rows])) for key in keys}
    return summary | {"worst_token_accuracy": min(row["token_accuracy"] for row in rows)}


def _is_number(value) -> bool:
    return value is not None and math.isfinite(value)


def fits(task: Task, validation_rows: list[dict]) -> bool:
    """Return whether a model can do what training showed, by the rule of its task."""
    if any(row["token_accuracy"] is None or row["nll"] is None for row in validation_rows):
        return False  # a cell that couldn't be measured is not solved
    return task.fits(validation_summary(validation_rows))
