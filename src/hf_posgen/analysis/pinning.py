"""Pinning (Singh, Mishra, Raut 2026, arXiv 2607.18759; measures *reconstructed*).

A head that learned rows of an absolute table has nothing to go by beyond them, and its strongest key stays at some
absolute position inside the training range. For the last query of longer sequences:

- in_range: share of sequences whose strongest key lies in the training range although the right one doesn't, beside its
  null, training length / L (what a key drawn at random would give);
- right: share whose strongest key is the asked one; modal_index and modal_share: the commonest strongest key;
- query_in_range: the same sequences, with only the last token's position said to be the last trained one. `right` is then
  the share whose strongest key stands k before *that* position. If it is restored, the query's row was bad, not the keys'.
"""

import numpy as np
import torch

from .attention_view import attention_views
from .subject import NotApplicable, Subject

LONGEST = 256  # tokens


@torch.no_grad()
def measure(subject: Subject) -> dict:
    subject.require_softmax()
    subject.require_offset()
    lengths = [n for n in subject.lengths if subject.train_length + subject.offset < n <= LONGEST]
    if not lengths:
        raise NotApplicable(f"no evaluated length beyond the training range, up to {LONGEST}")
    entries = [entry for length in lengths for entry in _at(subject, length)]
    return {"offset": subject.offset, "train_length": subject.train_length, "heads": entries}


def _at(subject: Subject, length: int) -> list[dict]:
    tokens, _ = subject.sequences(length)
    bos = int(subject.task.bos)
    trained = subject.train_length + bos
    moved = torch.arange(tokens.shape[1])[None].clone()
    moved[0, -1] = trained - 1
    entries = []
    views = attention_views(subject.model, tokens)
    views_moved = attention_views(subject.model, tokens, positions=moved)
    for view, other in zip(views, views_moved, strict=True):
        for head in range(view.q_BHLK.shape[1]):
            facts = strongest(view.last_logits()[:, head].argmax(-1), trained, subject.target_key(length))
            back = strongest(other.last_logits()[:, head].argmax(-1), trained, trained - 1 - subject.offset)
            entry = {"layer": view.layer, "head": head, "length": length, "null": trained / tokens.shape[1]}
            entries.append(entry | facts | {"query_in_range": back})
    return entries


def strongest(keys_N: torch.Tensor, trained: int, right: int) -> dict:
    """What a set of strongest keys says."""
    values, counts = keys_N.unique(return_counts=True)
    return {
        "in_range": float((keys_N < trained).double().mean()),
        "right": float((keys_N == right).double().mean()),
        "modal_index": int(values[counts.argmax()]),
        "modal_share": float(counts.max() / counts.sum()),
        "strongest": {str(int(v)): int(c) for v, c in zip(values, counts, strict=True)},
    }


def figure(result: dict):
    """A map of where the strongest key stands, per length, as it is and with the query put back in range."""
    from .drawing import head_name, panels

    name = head_name(result["heads"][0])
    first = [e for e in result["heads"] if head_name(e) == name]
    fig, axes = panels(2, width=5)
    width = max(e["length"] for e in first)
    for ax, pick, title in (
        (axes[0], lambda e: e, "strongest key of the last query"),
        (axes[1], lambda e: e["query_in_range"], "with the query's position put back in range"),
    ):
        picture = np.full((len(first), width), np.nan)
        for row, entry in enumerate(first):
            shares = pick(entry)["strongest"]
            picture[row, : entry["length"]] = 0
            for index, number in shares.items():
                picture[row, int(index)] = number / sum(shares.values())
        image = ax.imshow(picture, aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
        ax.axvline(result["train_length"] - 0.5, color="#ff5555", lw=1)
        ax.set_xscale("symlog", linthresh=32)
        ax.set_yticks(range(len(first)), [f"L {e['length']}, right {pick(e)['right']:.2f}" for e in first], fontsize=7)
        ax.set(xlabel="key index (red: end of the training range)", title=f"{title}\n{name}")
        ax.grid(False)
    fig.colorbar(image, ax=list(axes), label="share of sequences")
    return fig
