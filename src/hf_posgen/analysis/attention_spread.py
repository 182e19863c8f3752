"""Attention's entropy, and its mass by distance, against length.

Means are over all queries that see at least two keys.

- entropy: of a query's attention weights, in nats; relative_entropy: the same over the log of the number of keys it sees,
  1 where attention is even.
- mass: the share of attention in each distance band 0, 1, 2-3, 4-7, 8-15, ... tokens back.

Entropy of attention as a cause of failing at length: Chiang and Cholak 2022, arXiv 2202.12172; the bands are
*reconstructed*. The sums run over chunks of rows, so that nothing of size L × L is held.
"""

import math

import torch

from ..plotting import COLOURS, legend_below, side_by_side, trained_lengths
from .context import AnalysisContext, head_name, per_head

TOKENS = 2**13  # per length, so that long sequences cost no more than short ones


@torch.no_grad()
def measure(context: AnalysisContext) -> dict:
    context.require_softmax()
    lengths = sorted({context.train_length, *(n for n in context.lengths if n >= context.train_length)})
    entries = []
    for length in lengths:
        for view in context.views(length, max(4, min(context.count, TOKENS // length))):
            entries += [{"length": length} | entry for entry in per_head(view.layer, spread(view))]
    return {"train_length": context.train_length, "bands": bands(max(lengths) + 1), "heads": entries}


def bands(length: int) -> list[str]:
    """Names of the distance bands up to a length."""
    edges = [0, 1] + [2**i for i in range(1, math.ceil(math.log2(max(length, 2))))]
    return [str(low) if low < 2 else f"{low}-{2 * low - 1}" for low in edges if low < length]


def spread(view) -> dict[str, torch.Tensor]:
    """(H,) entropy of rows in nats, (H,) the same over log of the number of keys, (H, bands) mass by distance."""
    heads, length = view.q_BHLK.shape[1], view.length
    entropy, relative = torch.zeros(heads), torch.zeros(heads)
    mass, rows = torch.zeros(heads, len(bands(length))), 0
    for start, stop in view.chunks():
        weights = view.logits(start, stop).softmax(-1)
        nats = -(weights * weights.clamp(min=1e-30).log()).sum(-1).mean(0)  # (H, c)
        keys = view.visible.rows(start, stop).sum(-1).float().mean((0, 1)).expand(stop - start)
        some = keys > 1.5
        entropy += nats[:, some].sum(-1)
        relative += (nats[:, some] / keys[some].log()).sum(-1)
        rows += int(some.sum())
        back = torch.arange(start, stop)[:, None] - torch.arange(length)[None]
        band = torch.where(back < 1, 0, back.clamp(min=1).float().log2().floor().long() + 1)
        summed = weights[:, :, some].mean(0).flatten(1)
        mass.scatter_add_(1, band[some].flatten().expand(heads, -1), summed)
    return {"entropy": entropy / rows, "relative_entropy": relative / rows, "mass": mass / rows}


def figure(result: dict):
    """Draw the relative entropy of every head against length, and the first head's mass by distance."""
    figure, (left, right) = side_by_side(2, width=5)
    heads = dict.fromkeys((entry["layer"], entry["head"]) for entry in result["heads"])
    for i, head in enumerate(heads):
        entries = [entry for entry in result["heads"] if (entry["layer"], entry["head"]) == head]
        lengths, entropy = zip(*((entry["length"], entry["relative_entropy"]) for entry in entries), strict=True)
        left.plot(lengths, entropy, "o-", ms=4, color=COLOURS[i % len(COLOURS)], label=head_name(entries[0]))
    left.set(ylim=(0, 1.04), ylabel="entropy / log(keys seen)", title="evenness of attention")
    trained_lengths(left, [entry["length"] for entry in result["heads"]], result["train_length"])
    first = head_name(result["heads"][0])
    for i, entry in enumerate(entry for entry in result["heads"] if head_name(entry) == first):
        bands, colour = result["bands"][: len(entry["mass"])], COLOURS[i % len(COLOURS)]
        right.plot(bands, entry["mass"], "o-", ms=3, lw=1, color=colour, label=f"length {entry['length']}")
    right.set(xlabel="distance (tokens)", ylabel="mean share of attention", title=first)
    right.tick_params(axis="x", labelrotation=60, labelsize=7)
    legend_below(left, 3)
    legend_below(right, 3, drop=0.34)  # below the bands' names
    return figure
