"""Scores of sequences, as plain numpy. Labels and predictions are aligned (already shifted); -100 is not scored.

A *paste* is a maximal run of scored places. Where `paste` is set a run is one answer, else each scored place is.
"""

import numpy as np

IGNORE = -100


def score(predictions_NT: np.ndarray, labels_NT: np.ndarray, paste: bool) -> dict[str, np.ndarray]:
    """Return, per sequence, (N,) integers: tokens_correct, tokens_scored, answers_correct, answers, and for pastes
    first_correct, first_scored, rest_correct, rest_scored."""
    scored = labels_NT != IGNORE
    correct = scored & (predictions_NT == labels_NT)
    first = scored & ~np.pad(scored, ((0, 0), (1, 0)))[:, :-1]
    out = {"tokens_correct": correct.sum(1), "tokens_scored": scored.sum(1)}
    if not paste:
        return out | {"answers_correct": out["tokens_correct"], "answers": out["tokens_scored"]}
    run = np.cumsum(first, 1) * scored  # 1, 2, ... inside the pastes, 0 outside
    most = int(run.max(initial=0))
    wrong = np.zeros((len(run), most + 1), bool)
    rows, places = np.nonzero(scored & ~correct)
    wrong[rows, run[rows, places]] = True
    answers = first.sum(1)
    return out | {
        "answers_correct": answers - wrong[:, 1:].sum(1),
        "answers": answers,
        "first_correct": (correct & first).sum(1),
        "first_scored": answers,
        "rest_correct": (correct & ~first).sum(1),
        "rest_scored": (scored & ~first).sum(1),
    }


def score_ragged(predictions, labels, paste: bool) -> dict[str, np.ndarray]:
    """Return `score` of sequences of different lengths. Raises `ValueError` where a prediction and its labels differ
    in length."""
    for i, (predicted, expected) in enumerate(zip(predictions, labels, strict=True)):
        if len(predicted) != len(expected):
            raise ValueError(
                f"sequence {i} has {len(predicted)} predictions for {len(expected)} labels; they must be aligned"
            )
    width = max((len(one) for one in labels), default=0)
    padded = np.full((2, len(labels), width), IGNORE, np.int64)
    for i, (predicted, expected) in enumerate(zip(predictions, labels, strict=True)):
        padded[0, i, : len(predicted)], padded[1, i, : len(expected)] = predicted, expected
    return score(padded[0], padded[1], paste)
