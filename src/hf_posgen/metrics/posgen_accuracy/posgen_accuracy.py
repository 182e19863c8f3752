"""Token accuracy and exact match, cell by cell."""

import datasets
import evaluate

from .intervals import share
from .scoring import score_ragged

DESCRIPTION = """\
Accuracy of answers within sequences, cell (length, distance) by cell. A place is scored where its label is not -100.
Exact match is per answer: a scored place, or, with `paste`, a maximal run of scored places, whose first token and rest are
then counted apart as well. A cell without a scored place is named, and there is no mean over a grid with a hole in it.
"""

INPUTS = """\
Args:
    predictions: token ids, one sequence per example, aligned with the labels (already shifted).
    references: labels; -100 is not scored.
    length, distance: the cell of each sequence; distance -1 where there is none.
    paste (compute): whether a run of scored places is one answer. Default False.
    cells (compute): the (length, distance) pairs that were to be measured, so that one never met is named too.
Returns:
    cells: a list of {length, distance, count, exact_match, exact_match_low, exact_match_high, token_accuracy, ...}. The
        intervals are at 95 %: Wilson's over sequences where each asks at most once, else a bootstrap over sequences.
    exact_match, token_accuracy (and first_accuracy, rest_accuracy): the mean over cells; None if a cell is empty.
    empty_cells: the names of cells without a scored place, such as "L48 d3".
Examples:
    >>> accuracy = evaluate.load("posgen_accuracy")
    >>> accuracy.compute(predictions=[[5, 7]], references=[[-100, 7]], length=[2], distance=[1])["exact_match"]
    1.0
"""


@evaluate.utils.file_utils.add_start_docstrings(DESCRIPTION, INPUTS)
class PosgenAccuracy(evaluate.Metric):
    def _info(self):
        whole = datasets.Value("int64")
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description=INPUTS,
            features=datasets.Features(
                {
                    "predictions": datasets.Sequence(whole),
                    "references": datasets.Sequence(whole),
                    "length": whole,
                    "distance": whole,
                }
            ),
        )

    def _compute(self, predictions, references, length, distance, paste=False, cells=()):
        cells_members: dict[tuple[int, int], list[int]] = {(int(n), -1 if d is None else int(d)): [] for n, d in cells}
        for i, cell in enumerate(zip(length, distance, strict=True)):
            cells_members.setdefault(cell, []).append(i)
        names = ("exact_match", "token_accuracy", *(("first_accuracy", "rest_accuracy") if paste else ()))
        rows = []
        for (n, d), members in sorted(cells_members.items()):
            scores = score_ragged([predictions[i] for i in members], [references[i] for i in members], paste)
            row = {"length": n, "distance": None if d < 0 else d, "count": len(members)}
            for name, (correct, scored) in zip(names, _pairs(scores), strict=False):
                row |= share(name, correct, scored)
            rows.append(row)
        empty = [_name(row) for row in rows if row["exact_match"] is None]
        means = {name: _mean([row[name] for row in rows]) for name in names}
        return means | {"cells": rows, "empty_cells": empty}


def _pairs(scores):
    pairs = [("answers_correct", "answers"), ("tokens_correct", "tokens_scored")]
    pairs += [("first_correct", "first_scored"), ("rest_correct", "rest_scored")] if "first_correct" in scores else []
    return [(scores[correct], scores[scored]) for correct, scored in pairs]


def _name(row):
    return f"L{row['length']}" + ("" if row["distance"] is None else f" d{row['distance']}")


def _mean(values):
    return None if not values or None in values else sum(values) / len(values)
