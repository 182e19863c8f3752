"""The measures of a cell: what stands in its row of what was counted."""

import math

import numpy as np
import pandas as pd

from ..metrics.functional import IGNORE, bootstrap_ratio, bucket_means, share
from ..tasks import Task
from .scoring import Scores

PERPLEXITY = ("perplexity", "perplexity_low", "perplexity_high")


def measures(task: Task, scores: Scores, free_running: bool) -> dict:
    """Return the measures of a row: shares with intervals, nats per token, of text the perplexity; None where nothing is
    scored."""
    counts = scores.sequences
    row = share("exact_match", counts["answers_correct"], counts["answers"] * (task.metric == "exact_match"))
    row |= share("token_accuracy", counts["tokens_correct"], counts["tokens_scored"])
    if free_running:
        row |= share("free_running_accuracy", counts["free_correct"], counts["tokens_scored"])
    for part in ("first", "rest") if task.paste else ():
        row |= share(f"{part}_accuracy", counts[f"{part}_correct"], counts[f"{part}_scored"])
    row["nll"] = float(scores.nats.mean()) if len(scores.nats) else None
    return row | (_perplexity(task, scores) if task.metric == "perplexity" else {})


def _perplexity(task: Task, scores: Scores) -> dict:
    """Return perplexity with a bootstrap interval over windows, and nats by how many tokens stand before: infinite where it
    is beyond what a float holds, None where nothing is scored."""
    if not len(scores.nats):
        return dict.fromkeys(PERPLEXITY) | {"positions": []}
    with np.errstate(invalid="ignore"):  # an infinite sum has no interval
        ends = bootstrap_ratio(scores.sequences["nats"], scores.sequences["tokens_scored"])
    means = pd.DataFrame(bucket_means(scores.place, scores.nats, task.bucket))
    values = (perplexity(nats) for nats in (scores.nats.mean(), *ends))
    measures = dict(zip(PERPLEXITY, values, strict=True))
    return measures | {"positions": means[means["count"] > 0].to_dict("records")}


def perplexity(nats: float) -> float:
    """Return e to the mean nats per token; infinite where that is beyond what a float holds."""
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


def chance_of_answers(chance: float, labels_NT: np.ndarray, paste: bool) -> float | None:
    """Return how often a guess is right on a whole answer that is right on a token with probability `chance`: on a paste of
    n tokens with its n-th power. None where nothing is scored."""
    scored = np.pad(labels_NT != IGNORE, ((0, 0), (1, 1))).astype(np.int8)
    ends = np.diff(scored, axis=1)
    lengths = np.nonzero(ends == -1)[1] - np.nonzero(ends == 1)[1]  # of the runs of scored places, in order
    if not len(lengths):
        return None
    return float((chance**lengths).mean()) if paste else chance


def describe_infinite(row: dict) -> str | None:
    """Return a sentence about the measures of a row that are infinite, which JSON can't hold; None without any."""
    keys = [key for key in ("nll", "perplexity") if row.get(key) is not None and not math.isfinite(row[key])]
    return f"{' and '.join(keys)} infinite: a scored token has next to no probability" if keys else None


def strict(value):
    """Return a value of a row with None for every number that JSON can't hold."""
    if isinstance(value, dict):
        return {key: strict(part) for key, part in value.items()}
    if isinstance(value, list):
        return [strict(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
