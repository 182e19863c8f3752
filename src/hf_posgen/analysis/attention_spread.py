"""How attention spreads: its entropy in nats and over log of the keys seen, and its mass by distance.

Summed over chunks of rows, so that nothing of size L × L is held. Means are over all queries of the sequences that see at
least two keys. `mass` is per distance band 0, 1, 2-3, 4-7, 8-15, ... tokens. (Entropy of attention as a cause of failing at
length: Chiang and Cholak 2022, arXiv 2202.12172; bands *reconstructed*.)
"""

import math

import torch

from .subject import Subject, per_head

TOKENS = 2**13  # per length, so that long sequences cost no more than short ones


@torch.no_grad()
def measure(subject: Subject) -> dict:
    subject.require_softmax()
    lengths = sorted({subject.train_length, *(n for n in subject.lengths if n >= subject.train_length)})
    entries = []
    for length in lengths:
        for view in subject.views(length, max(4, min(subject.count, TOKENS // length))):
            entries += [{"length": length} | entry for entry in per_head(view.layer, spread(view))]
    return {"train_length": subject.train_length, "bands": bands(max(lengths) + 1), "heads": entries}


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
    from .drawing import head_name, lengths_axis, panels

    fig, axes = panels(2, width=5)
    names = dict.fromkeys((e["layer"], e["head"]) for e in result["heads"])
    for name in names:
        mine = [e for e in result["heads"] if (e["layer"], e["head"]) == name]
        axes[0].plot(
            [e["length"] for e in mine], [e["relative_entropy"] for e in mine], "o-", ms=4, label=head_name(mine[0])
        )
    axes[0].set(ylim=(0, 1.04), ylabel="entropy / log(keys seen)")
    lengths_axis(axes[0], result["train_length"])
    axes[0].legend(fontsize=7, frameon=False)
    first = head_name(result["heads"][0])
    for entry in [e for e in result["heads"] if head_name(e) == first]:
        axes[1].plot(
            result["bands"][: len(entry["mass"])], entry["mass"], "o-", ms=3, lw=1, label=f"L {entry['length']}"
        )
    axes[1].set(xlabel="distance (tokens)", ylabel="mean mass", title=first)
    axes[1].tick_params(axis="x", labelrotation=60, labelsize=7)
    axes[1].legend(fontsize=7, frameon=False)
    return fig
