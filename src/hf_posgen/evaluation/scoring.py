"""A model's answers at the scored places of a task's sequences, and how many of them are right."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ..metrics.functional import IGNORE, score


class NotANumber(ArithmeticError):
    """A model's logits are no numbers, so that nothing it answers can be scored."""


@dataclass(frozen=True)
class Scores:
    """What a model did on some sequences of a cell.

    sequences: {what is counted or summed: (N,)}, one entry per sequence. nats, place: (n,), for each scored token its
    negative log-likelihood and where it stands."""

    sequences: dict[str, np.ndarray]
    nats: np.ndarray
    place: np.ndarray

    @classmethod
    def concatenate(cls, parts: Iterable["Scores"]) -> "Scores":
        """Return the scores of all sequences of some batches, in order."""
        parts = list(parts)
        keys = parts[0].sequences
        return cls(
            {key: np.concatenate([part.sequences[key] for part in parts]) for key in keys},
            np.concatenate([part.nats for part in parts]),
            np.concatenate([part.place for part in parts]),
        )

    @classmethod
    def of_nothing(cls, paste: bool) -> "Scores":
        """Return the scores of no sequences."""
        none = np.zeros((0, 2), np.int64)
        counts = score(none, none, paste) | {"nats": np.zeros(0), "free_correct": np.zeros(0, np.int64)}
        return cls(counts, np.zeros(0), np.zeros(0, np.int64))


@torch.no_grad()
def predict(
    model: nn.Module, input_ids: torch.Tensor, labels: torch.Tensor, **inputs
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return predictions (N, T), aligned with the labels (-100 where nothing is scored), and the nats of each scored token
    (n,).

    Only the columns where some sequence is scored go through the head. Raises `NotANumber` where scored logits are none."""
    scored = labels[:, 1:] != IGNORE
    columns = scored.any(0).nonzero().squeeze(1)
    output = model(input_ids=input_ids, use_cache=False, logits_to_keep=columns, **inputs)
    logits = output.logits[scored[:, columns]].float()
    predictions = torch.full_like(labels, IGNORE)
    predictions[:, 1:][scored] = logits.argmax(-1)
    nats = nn.functional.cross_entropy(logits, labels[:, 1:][scored], reduction="none")
    if nats.isnan().any():  # one that is no number makes the whole softmax none, and argmax would take it for the best
        count = int(nats.isnan().sum())
        raise NotANumber(f"the logits are no numbers at {count:,} of {len(nats):,} scored tokens of a batch")
    return predictions, nats


@torch.no_grad()
def predict_freely(model: nn.Module, input_ids: torch.Tensor, labels: torch.Tensor, **inputs) -> torch.Tensor:
    """Return predictions (N, T) as `predict` does, but where the model reads its own pasted tokens instead of the right
    ones, as when it generates greedily; -100 where nothing is scored.

    They are a fixed point, found by predicting again with the last predictions in place: the first wrong answer of a causal
    model depends on right tokens alone, so every pass settles at least one more answer of each sequence, and a sequence is
    left out once nothing changes. Greedy decoding token by token gives the same (up to ties)."""
    answers = labels != IGNORE
    predictions, _ = predict(model, input_ids, labels, **inputs)
    unsettled = (answers & (predictions != input_ids)).any(1).nonzero().squeeze(1)
    for _ in range(int(answers.sum(1).max())):
        if not len(unsettled):
            break
        tokens = torch.where(answers[unsettled], predictions[unsettled], input_ids[unsettled])
        options = {name: array[unsettled] for name, array in inputs.items()}
        again, _ = predict(model, tokens, labels[unsettled], **options)
        changed = (answers[unsettled] & (again != predictions[unsettled])).any(1)
        predictions[unsettled] = again
        unsettled = unsettled[changed]
    return predictions


def score_batch(model: nn.Module, batch: dict[str, np.ndarray], paste: bool, free_running: bool) -> Scores:
    """Return a model's scores on a batch, {column of the task: (N, T)}.

    paste: whether a run of scored places is one answer. free_running: count too what is right where the model reads its own
    pasted tokens."""
    device, labels = next(model.parameters()).device, batch["labels"]
    inputs = {name: torch.from_numpy(array).to(device) for name, array in batch.items()}
    predictions, nats = predict(model, **inputs)
    nats = nats.double().cpu().numpy()
    rows, columns = np.nonzero(labels[:, 1:] != IGNORE)
    sequences = score(predictions.cpu().numpy(), labels, paste) | {"nats": np.bincount(rows, nats, len(labels))}
    if free_running:
        freely = score(predict_freely(model, **inputs).cpu().numpy(), labels, paste=False)
        sequences["free_correct"] = freely["tokens_correct"]
    positions = batch.get("position_ids", batch.get("positions"))
    return Scores(sequences, nats, columns + 1 if positions is None else positions[rows, columns + 1])
