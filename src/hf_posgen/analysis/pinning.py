"""Whether the strongest key is an absolute position inside the training range.

Pinning (Singh, Mishra, Raut 2026, arXiv 2607.18759; measures *reconstructed*): a head that learned rows of an absolute
table has nothing to go by beyond them, and its strongest key stays at some absolute position inside the training range.
For the last query of longer sequences:

- in_range: share of sequences whose strongest key lies in the training range although the right one doesn't, beside its
  null, training length / L (what a key drawn at random would give);
- right: share whose strongest key is the one that the task asks for; modal_index and modal_share: the commonest strongest
  key, and the share of sequences that have it; right_key: the index of the right one;
- query_in_range: the same sequences, with only the last token's position said to be the last trained one. `right` is then
  the share whose strongest key stands k before *that* position. If it is restored, the query's row was bad, not the keys'.
"""

import numpy as np
import torch

from ..plotting import legend_below, side_by_side
from .attention_view import attention_views
from .context import AnalysisContext, NotApplicable, head_name

LONGEST = 256  # tokens


@torch.no_grad()
def measure(context: AnalysisContext) -> dict:
    context.require_softmax()
    context.require_offset()
    lengths = [n for n in context.lengths if context.train_length + context.offset < n <= LONGEST]
    if not lengths:
        raise NotApplicable(f"no evaluated length beyond the training range, up to {LONGEST}")
    entries = [entry for length in lengths for entry in _at(context, length)]
    trained_keys = context.train_length + int(context.task.bos)
    facts = {"offset": context.offset, "train_length": context.train_length, "trained_keys": trained_keys}
    return facts | {"heads": entries}


def _at(context: AnalysisContext, length: int) -> list[dict]:
    tokens, _ = context.sequences(length)
    bos = int(context.task.bos)
    trained = context.train_length + bos
    moved = torch.arange(tokens.shape[1])[None].clone()
    moved[0, -1] = trained - 1
    entries = []
    views = attention_views(context.model, tokens)
    views_moved = attention_views(context.model, tokens, positions=moved)
    for view, other in zip(views, views_moved, strict=True):
        for head in range(view.q_BHLK.shape[1]):
            facts = strongest(view.last_logits()[:, head].argmax(-1), trained, context.target_key(length))
            back = strongest(other.last_logits()[:, head].argmax(-1), trained, trained - 1 - context.offset)
            entry = {"layer": view.layer, "head": head, "length": length, "keys": tokens.shape[1]}
            entry |= {"null": trained / tokens.shape[1]}
            entries.append(entry | facts | {"query_in_range": back})
    return entries


def strongest(keys_N: torch.Tensor, trained: int, right: int) -> dict:
    """Return where the strongest keys of some sequences stand: shares, the commonest, and how often each index occurs."""
    values, counts = keys_N.unique(return_counts=True)
    return {
        "in_range": float((keys_N < trained).double().mean()),
        "right": float((keys_N == right).double().mean()),
        "right_key": right,
        "modal_index": int(values[counts.argmax()]),
        "modal_share": float(counts.max() / counts.sum()),
        "strongest": {str(int(v)): int(c) for v, c in zip(values, counts, strict=True)},
    }


def figure(result: dict):
    """Draw which key is strongest, per length, as it is and with the query's position put back in range."""
    name = head_name(result["heads"][0])
    entries = [entry for entry in result["heads"] if head_name(entry) == name]
    figure, axes = side_by_side(2, width=5.4, height=1.6 + 0.55 * len(entries))
    image = strongest_keys(axes[0], entries)
    strongest_keys(axes[1], [entry | entry["query_in_range"] for entry in entries])
    axes[0].set_title(f"strongest key of the last query\n{name}")
    axes[1].set_title("the same, its query said to stand at the\nlast trained position")
    for ax in axes:
        ax.axvline(result["trained_keys"] - 0.5, color="#ff5555", lw=1.2, label="end of the training range")
        ax.set_xlabel("key index (tokens)")
        legend_below(ax)
    figure.colorbar(image, ax=axes, label="share of sequences")
    return figure


def strongest_keys(ax, entries: list[dict]):
    """Draw a row per length: the share of sequences by strongest key, and where the right one stands. Return the image."""
    width = max(entry["keys"] for entry in entries)
    edges, labels = np.arange(width + 1) - 0.5, []
    for row, entry in enumerate(entries):
        shares = np.full((1, width), np.nan)
        shares[0, : entry["keys"]] = 0
        for index, number in entry["strongest"].items():
            shares[0, int(index)] = number / sum(entry["strongest"].values())
        image = ax.pcolormesh(edges, [row - 0.45, row + 0.45], shares, vmin=0, vmax=1, cmap="viridis")
        label = "the right key" if row == 0 else None
        ax.plot(
            entry["right_key"],
            row,
            "o",
            ms=8,
            mfc="none",
            mec="#ff9d2e",
            mew=1.6,
            ls="none",
            label=label,
            clip_on=False,
        )
        labels.append(f"length {entry['length']}: {entry['right']:.0%} right")
    ax.set_yticks(range(len(entries)), labels, fontsize=8)
    ax.set_xscale("symlog", linthresh=32, base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_ylim(len(entries) - 0.5, -0.5)
    ax.grid(False)
    return image
