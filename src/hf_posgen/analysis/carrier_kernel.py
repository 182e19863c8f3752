"""The mean logit by offset between query and key: where it peaks, how far ahead, and how alike the pairs of tokens are.

The carrier kernel of Singh, Mishra, Raut 2026 (arXiv 2607.18759; every formula here is *reconstructed*). κ_{c,c'}(δ) is
the logit of a key with token c' standing δ before a query with token c; κ(δ) its mean over the pairs of data symbols that
occur (at δ = 0 a query meets its own token alone). The claim: training leaves one kernel for all pairs (low rank), whose
frequencies are in phase at the task's offset k (φ_f ≈ θ_f k), so that it peaks there at any length.

- peak: argmax κ over the trained offsets; margin: κ(peak) less the runner-up; margin_at_offset: κ(k) less the best other.
- rank_one: share of the squared singular values of the matrix pairs × trained offsets (from 1 on) that the first holds,
  each kernel centred over the offsets; rank_one_raw: not centred. `untrained` gives the same of the model at its start.
- alias: the offset of the largest κ beyond the trained offsets; alias_value: κ there; alias_gap: κ(k) less it. Below 0, a
  far key beats the right one.
- alignment: Σ_f A_f cos(φ_f - θ_f k) / Σ_f A_f with the mean kernel's amplitudes A_f and phases φ_f (rotary encodings):
  1 where all are in phase at k.
- energy: A_f² / Σ A_f² per frequency.
- shift_error: how far κ on the trained offsets differs between the last trained and the last evaluated query position,
  relative to its largest value: 0 for relative encodings, and what a kernel means for absolute ones.

Layers above the first see contexts, not tokens: for them `mean_logits` gives the peak of the last query's mean logit.
"""

import numpy as np
import torch

from ..plotting import COLOURS, legend_below, side_by_side, trained_offsets
from .context import AnalysisContext, per_head, plain
from .kernel import frequency_parts, mean_kernel, mean_logits, pair_kernels, rank_one_share


def measure(context: AnalysisContext) -> dict:
    """Per head of the first layer, and the mean logits' peaks of every layer."""
    k = context.offset
    out = {"offset": k, "train_length": context.train_length, "longest": context.longest}
    heads = kernel_facts(context, context.model)
    if context.untrained is not None:
        keys = ("peak", "rank_one", "rank_one_raw", "alignment")
        for head, before in zip(heads, kernel_facts(context, context.untrained), strict=True):
            head["untrained"] = {key: before[key] for key in keys if key in before}
    out["heads"] = heads
    out["mean_logits"] = [
        entry
        for layer, kernel in mean_logits(context, context.train_length)
        for entry in per_head(layer, {"peak": kernel.argmax(-1), "kernel": kernel})
    ]
    return out


def kernel_facts(context: AnalysisContext, model) -> list[dict]:
    symbols, seen, k = context.require_symbols(), context.train_length, context.offset
    near = pair_kernels(model, symbols, seen - 1)
    far = pair_kernels(model, symbols, context.longest - 1)
    mean, long = mean_kernel(near), mean_kernel(far)
    top, spread = mean.topk(2).values, far.flatten(1, 2).std(1)
    spread[..., 0] = far[..., 0].diagonal(dim1=1, dim2=2).std(-1)
    facts = {
        "peak": mean.argmax(-1),
        "margin": top[:, 0] - top[:, 1],
        "rank_one": rank_one_share(near[..., 1:], centred=True),
        "rank_one_raw": rank_one_share(near[..., 1:], centred=False),
        "shift_error": (near - far[..., :seen]).abs().amax((1, 2, 3)) / near.abs().amax((1, 2, 3)).clamp(min=1e-12),
        "kernel": long,
        "spread": spread,
        "trained_kernel": mean,
    }
    if context.longest > seen:
        facts |= {"alias": long[:, seen:].argmax(-1) + seen, "alias_value": long[:, seen:].amax(-1)}
    if k is not None:
        others = mean.clone()
        others[:, k] = float("-inf")
        facts["margin_at_offset"] = mean[:, k] - others.amax(-1)
        if context.longest > seen:
            facts["alias_gap"] = long[:, k] - facts["alias_value"]
    return [
        head | phases for head, phases in zip(per_head(0, facts), _phases(model, symbols, k, len(mean)), strict=True)
    ]


def _phases(model, symbols: int, k: int | None, heads: int) -> list[dict]:
    parts = frequency_parts(model, symbols)
    if parts is None:
        return [{}] * heads
    frequencies, parts = parts[0], parts[1].mean((1, 2))  # (H, F)
    out = []
    for part in parts:
        amplitude, phase = part.abs(), -part.angle()
        facts = {"frequencies": plain(frequencies), "energy": plain(amplitude.square() / amplitude.square().sum())}
        if k is not None:
            in_phase = torch.cos(phase - frequencies * k)
            facts |= {"in_phase": plain(in_phase), "alignment": float((amplitude * in_phase).sum() / amplitude.sum())}
        out.append(facts)
    return out


def figure(result: dict):
    """Draw the first head's kernel near and far, and where its energy lies."""
    head, offset = result["heads"][0], result["offset"]
    figure, axes = side_by_side(3 if "energy" in head else 2, width=5)
    near = min(2 * result["train_length"], len(head["kernel"]))
    _kernel(axes[0], head, near)
    _kernel(axes[1], head, len(head["kernel"]))
    axes[0].set(title="around the trained offsets")
    axes[1].set(title="all evaluated offsets")
    axes[1].set_xscale("symlog", linthresh=16, base=2)
    axes[1].xaxis.set_major_formatter("{x:g}")
    for ax in axes[:2]:
        trained_offsets(ax, result["train_length"], offset)
        ax.set(xlabel="offset δ from key to query (tokens)", ylabel="mean logit κ(δ) (nats)")
        legend_below(ax)
    if "energy" in head:
        _energy(axes[2], head, offset)
    words = [f"peak at {head['peak']}", f"{head['rank_one']:.0%} of the variation shared by all pairs of tokens"]
    figure.suptitle(f"Carrier kernel: {', '.join(words)}", fontsize=10.5, ha="left", x=0.02)
    return figure


def _kernel(ax, head: dict, count: int) -> None:
    kernel, spread = np.array(head["kernel"])[:count], np.array(head["spread"])[:count]
    offsets, close = np.arange(count), count < len(head["kernel"])
    label = "± standard deviation over pairs"
    ax.fill_between(offsets, kernel - spread, kernel + spread, color=COLOURS[0], alpha=0.2, lw=0, label=label)
    ax.plot(offsets, kernel, color=COLOURS[0], lw=1.3, marker="o" if close else "", ms=3, label="mean over pairs")
    if head.get("alias", count) < count:
        label = f"largest beyond, δ = {head['alias']}"
        ax.plot(head["alias"], head["alias_value"], "v", ls="none", color=COLOURS[1], ms=6, label=label)


def _energy(ax, head: dict, offset: int | None) -> None:
    """Draw a bar per frequency, in two colours where there is an offset to be in phase with."""
    energy, title = np.array(head["energy"]), "energy by frequency"
    groups = {"share of energy": np.ones(len(energy), bool)}
    if "in_phase" in head:
        in_phase = np.array(head["in_phase"]) > 0
        groups = {f"pushes κ({offset}) up": in_phase, f"pushes κ({offset}) down": ~in_phase}
        title += f", alignment {head['alignment']:.2f}"
    for (label, chosen), colour in zip(groups.items(), COLOURS, strict=False):
        if chosen.any():
            ax.bar(np.flatnonzero(chosen), energy[chosen], color=colour, label=label)
    ax.set(xlabel="frequency, fastest first", ylabel="share of energy", title=title)
    legend_below(ax)
