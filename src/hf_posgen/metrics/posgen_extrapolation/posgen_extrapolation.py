"""How far a model extrapolates: the headline numbers."""

import datasets
import evaluate
import numpy as np

from .headlines import far_numbers, max_solved
from .intervals import share

DESCRIPTION = """\
The headline numbers of an extrapolation: the longest length and the farthest distance solved, means over what was longer,
farther, nearer and both than in training, and the distance-generalisation ratio P of Nevermann and Gros (2026) with its
validity check and its nulls. Any score that counts right answers of a sequence can be summarised.
"""

INPUTS = """\
Args:
    predictions: how many answers of each sequence are right.
    references: how many answers it has; 0 is not scored.
    length, distance: the cell of each sequence; distance -1 where there is none.
    train_length, train_distance (compute): (smallest, largest) as trained; train_distance None where there is none.
    chance (compute): the accuracy of a guess, which is the floor: a number, or {distance: number}. Default 0.
    ceiling (compute): the accuracy of whoever knows all that can be known, likewise. Default 1.
    ngram (compute): what a 2-gram baseline scores, likewise; None (the default) where it says nothing.
    level (compute): what the lower bound of a cell must reach to be kept. Default 0.9.
    cells (compute): the (length, distance) pairs that were to be measured, so that one never met is named too.
Returns:
    longest_length, farthest_distance: the largest up to which the lower end of the 95 % interval (Wilson's over sequences
        where each asks at most once, else a bootstrap over sequences) is at least `level` at every cell, the other axis as
        trained; None where the first fails.
    in_distribution, longer, farther, nearer, both: means over cells; None where there are none, or one is empty.
    sum_over_distances, P, P_invalid (why P means nothing, or ""), P_overshoot (the P of a model that overshoots by five
        tokens), P_ngram (that of the 2-gram baseline), W (distances won beyond training).
    empty_cells: the names of cells without an answer.
Examples:
    >>> summary = evaluate.load("posgen_extrapolation")
    >>> summary.compute(predictions=[1] * 90, references=[1] * 90, length=[8, 16, 32] * 30, distance=[3] * 90,
    ...                 train_length=(4, 16), train_distance=(3, 3), level=0.8)["longest_length"]
    32
"""


@evaluate.utils.file_utils.add_start_docstrings(DESCRIPTION, INPUTS)
class PosgenExtrapolation(evaluate.Metric):
    def _info(self):
        whole = datasets.Value("int64")
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description=INPUTS,
            features=datasets.Features(
                {"predictions": whole, "references": whole, "length": whole, "distance": whole},
            ),
        )

    def _compute(
        self,
        predictions,
        references,
        length,
        distance,
        train_length,
        train_distance=None,
        chance=0.0,
        ceiling=1.0,
        ngram=None,
        level=0.9,
        cells=(),
    ):
        counts = {(int(n), -1 if d is None else int(d)): [] for n, d in cells}
        for correct, answers, *cell in zip(predictions, references, length, distance, strict=True):
            if not 0 <= correct <= answers:
                raise ValueError(
                    f"{correct} right answers of {answers}: predictions count right answers, references all"
                )
            counts.setdefault(tuple(cell), []).append((correct, answers))
        shares = {cell: share("right", *np.array(pairs, int).reshape(-1, 2).T) for cell, pairs in counts.items()}
        value = {cell: one["right"] for cell, one in shares.items()}
        split = {cell: split_of(*cell, train_length, train_distance) for cell in counts}
        out = {name: _mean([value[cell] for cell in counts if split[cell] == name]) for name in SPLITS}
        for name, beyond, at in (("longest_length", "longer", 0), ("farthest_distance", "farther", 1)):
            along = [
                (cell[at], shares[cell]["right_low"] or 0.0)  # an empty cell is not kept
                for cell in counts
                if split[cell] in ("in_distribution", beyond)
            ]
            out[name] = max_solved([pair for pair in along if pair[0] >= 0], level)
        out |= _far(value, train_length, train_distance, {"chance": chance, "ceiling": ceiling, "ngram": ngram})
        return out | {"empty_cells": [_name(cell) for cell in sorted(counts) if value[cell] is None]}


SPLITS = ("in_distribution", "longer", "farther", "nearer", "both")


def split_of(length, distance, train_length, train_distance):
    """Which part of the grid a cell lies in; "shorter" is none of the named ones."""
    long = length > train_length[1]
    if length < train_length[0]:
        return "shorter"
    if train_distance is None or distance < 0 or train_distance[0] <= distance <= train_distance[1]:
        return "longer" if long else "in_distribution"
    if distance < train_distance[0]:
        return "longer and nearer" if long else "nearer"
    return "both" if long else "farther"


def _far(value, train_length, train_distance, references):
    names = ("sum_over_distances", "P", "P_invalid", "P_overshoot", "P_ngram", "W")
    curve = {d: v for (n, d), v in value.items() if n == train_length[1] and d >= 1}
    if train_distance is None:
        return dict.fromkeys(names)
    if not any(v is not None for v in curve.values()):
        return dict.fromkeys(names) | {"P_invalid": f"no distance was evaluated at length {train_length[1]}"}
    far = far_numbers(curve, train_distance[1], *(_curve(name, level, curve) for name, level in references.items()))
    numbers = (far.total, far.ratio, far.invalid, far.overshoot, far.ngram, far.won)
    return dict(zip(names, numbers, strict=True))


def _curve(name, level, distances):
    """A number for every distance; None stays None."""
    if not isinstance(level, dict):
        return None if level is None else dict.fromkeys(distances, level)
    missing = [d for d in sorted(distances) if d not in level]
    if missing:
        raise ValueError(
            f"{name} has no value at distance {missing[0]}: give one number, or one for every distance evaluated"
        )
    return {d: level[d] for d in distances}


def _mean(values):
    return None if not values or None in values else sum(values) / len(values)


def _name(cell):
    return f"L{cell[0]}" + ("" if cell[1] < 0 else f" d{cell[1]}")
