"""Whether a head's attention follows positions or tokens: how it answers a swap of two keys.

After the definitions of Urrutia et al. 2025 (arXiv 2511.11579): positional is invariance, symbolic equivariance under
permutations of keys; the scores are *reconstructed* on weights, over random swaps. Tokens at two places i, j before the
last query are exchanged; a and a' are its weights before and after.

- positional: 1 - Σ(|a'_i - a_i| + |a'_j - a_j|) / Σ(a_i + a_j + a'_i + a'_j): 1 where weights stay at their places.
- symbolic: 1 - Σ(|a'_i - a_j| + |a'_j - a_i|) / the same: 1 where they move with the tokens.

Only pairs of different tokens count; even attention scores 1 on both. Above the first layer a swap also changes what the
layers below made of the other tokens.
"""

import torch

from ..plotting import COLOURS, legend_below, side_by_side
from .attention_view import attention_views
from .context import AnalysisContext, head_name, per_head

SWAPS = 16  # per sequence


@torch.no_grad()
def measure(context: AnalysisContext) -> dict:
    context.require_softmax()
    lengths = [context.train_length, *[n for n in context.lengths if n > context.train_length and n <= 128][-1:]]
    entries = []
    for length in lengths:
        tokens, _ = context.sequences(length, 64)
        for layer, scores in swap_scores(context.model, tokens, int(context.task.bos), context.run.seed):
            entries += [{"length": length} | entry for entry in per_head(layer, scores)]
    return {"train_length": context.train_length, "heads": entries}


@torch.no_grad()
def swap_scores(model, tokens: torch.Tensor, first: int = 0, seed: int = 0) -> list[tuple[int, dict]]:
    """[(layer, {positional (H,), symbolic (H,)})] for keys first..T-2."""
    generator = torch.Generator().manual_seed(seed)
    count, length = tokens.shape
    before = attention_views(model, tokens)
    sums = [torch.zeros(3, view.q_BHLK.shape[1]) for view in before]
    rows = torch.arange(count)
    for _ in range(SWAPS):
        order = torch.rand(count, length - 1 - first, generator=generator).argsort(-1)[:, :2] + first
        i, j = order.T
        swapped = tokens.clone()
        swapped[rows, i], swapped[rows, j] = tokens[rows, j], tokens[rows, i]
        counts = tokens[rows, i] != tokens[rows, j]
        for total, view, other in zip(sums, before, attention_views(model, swapped), strict=True):
            a, b = (v.last_logits().softmax(-1)[counts] for v in (view, other))
            a_i, a_j, b_i, b_j = (_at(w, where[counts]) for w in (a, b) for where in (i, j))
            total[0] += ((b_i - a_i).abs() + (b_j - a_j).abs()).sum(0)
            total[1] += ((b_i - a_j).abs() + (b_j - a_i).abs()).sum(0)
            total[2] += (a_i + a_j + b_i + b_j).sum(0)
    whole = [total[2].clamp(min=1e-30) for total in sums]
    return [
        (view.layer, {"positional": 1 - total[0] / size, "symbolic": 1 - total[1] / size})
        for view, total, size in zip(before, sums, whole, strict=True)
    ]


def _at(weights_NHM: torch.Tensor, where_N: torch.Tensor) -> torch.Tensor:
    """(N, H): each sequence's weight at a place of its own."""
    return weights_NHM[torch.arange(len(weights_NHM)), :, where_N]


def figure(result: dict):
    """Draw every head as a point for each length: a dot in the trained range, a cross beyond it."""
    figure, (ax,) = side_by_side(1, width=4.6, height=4.4)
    heads = list(dict.fromkeys(head_name(entry) for entry in result["heads"]))
    for entry in result["heads"]:
        colour = COLOURS[heads.index(head_name(entry)) % len(COLOURS)]
        marker = "o" if entry["length"] <= result["train_length"] else "x"
        label = f"{head_name(entry)}, length {entry['length']}"
        ax.plot(entry["positional"], entry["symbolic"], marker, ls="none", color=colour, label=label)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="positional", ylabel="symbolic")
    ax.set_title("heads under swaps of keys")
    legend_below(ax, 1)
    return figure
