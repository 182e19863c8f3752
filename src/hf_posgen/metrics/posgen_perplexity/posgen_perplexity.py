"""Perplexity by position."""

import datasets
import evaluate
import numpy as np

from .by_position import nats_by_position

DESCRIPTION = """\
Perplexity of the scored tokens at each position of a sequence, or in buckets of positions: where in the context does a
model start to fail? A place is scored where its label is not -100. Positions without a scored token are named, and not
averaged away.
"""

INPUTS = """\
Args:
    predictions: the negative log-likelihood of each label in nats, one sequence of numbers per example. Places whose
        label is -100 may hold anything.
    references: labels; -100 is not scored.
    bucket (compute): how many positions to take together. Default 1.
Returns:
    positions: a list of {start, count, nats, perplexity}; nats and perplexity are None where nothing is scored.
    perplexity, nats: over all scored tokens; None where there are none.
    empty_positions: the starts of buckets without a scored token.
Examples:
    >>> perplexity = evaluate.load("posgen_perplexity")
    >>> perplexity.compute(predictions=[[0.0, 0.6931472]], references=[[-100, 7]])["nats"]
    0.6931472
"""


@evaluate.utils.file_utils.add_start_docstrings(DESCRIPTION, INPUTS)
class PosgenPerplexity(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description=INPUTS,
            features=datasets.Features(
                {
                    "predictions": datasets.Sequence(datasets.Value("float64")),
                    "references": datasets.Sequence(datasets.Value("int64")),
                }
            ),
        )

    def _compute(self, predictions, references, bucket=1):
        by = nats_by_position(predictions, references, bucket)
        rows = [
            {"start": int(start), "count": int(count)} | _pair(float(nats) if count else None)
            for start, count, nats in zip(by["start"], by["count"], by["nats"], strict=True)
        ]
        some = by["count"] > 0
        whole = float(np.average(by["nats"][some], weights=by["count"][some])) if some.any() else None
        empty = [row["start"] for row in rows if row["count"] == 0]
        return _pair(whole) | {"positions": rows, "empty_positions": empty}


def _pair(nats):
    return {"nats": nats, "perplexity": None if nats is None else float(np.exp(nats))}
