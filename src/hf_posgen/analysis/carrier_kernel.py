"""The carrier kernel (Singh, Mishra, Raut 2026, arXiv 2607.18759; every formula here is *reconstructed*).

κ_{c,c'}(δ) is the logit of a key with token c' standing δ before a query with token c; κ(δ) its mean over the pairs of data
symbols that occur (at δ = 0 a query meets its own token alone). The claim: training leaves one kernel for all pairs (low
rank), whose frequencies are in phase at the asked offset k (φ_f ≈ θ_f k), so that it peaks there at any length.

- peak: argmax κ over the trained offsets; margin: κ(peak) less the runner-up; margin_at_offset: κ(k) less the best other.
- rank_one: share of the squared singular values of the matrix pairs × trained offsets (from 1 on) that the first holds,
  each kernel centred over the offsets (raw: not centred). `untrained` gives the same of the model at its start.
- alias: the largest κ beyond the trained offsets; alias_gap: κ(k) less it. Below 0, a far key beats the right one.
- alignment: Σ_f A_f cos(φ_f - θ_f k) / Σ_f A_f with the mean kernel's amplitudes A_f and phases φ_f (rotary encodings):
  1 where all are in phase at k.
- energy: A_f² / Σ A_f² per frequency.
- shift_error: how far κ on the trained offsets differs between the last trained and the last evaluated query position,
  relative to its largest value: 0 for relative encodings, and what a kernel means for absolute ones.

Layers above the first see contexts, not tokens: for them `mean_logits` gives the peak of the last query's mean logit.
"""

import numpy as np
import torch

from .kernel import frequency_parts, mean_kernel, mean_logits, pair_kernels, rank_one_share
from .subject import Subject, per_head, plain


def measure(subject: Subject) -> dict:
    """Per head of the first layer, and the mean logits' peaks of every layer."""
    k = subject.offset
    out = {"offset": k, "train_length": subject.train_length, "longest": subject.longest}
    heads = kernel_facts(subject, subject.model)
    if subject.untrained is not None:
        keys = ("peak", "rank_one", "rank_one_raw", "alignment")
        for head, before in zip(heads, kernel_facts(subject, subject.untrained), strict=True):
            head["untrained"] = {key: before[key] for key in keys if key in before}
    out["heads"] = heads
    out["mean_logits"] = [
        entry
        for layer, kernel in mean_logits(subject, subject.train_length)
        for entry in per_head(layer, {"peak": kernel.argmax(-1), "kernel": kernel})
    ]
    return out


def kernel_facts(subject: Subject, model) -> list[dict]:
    symbols, seen, k = subject.require_symbols(), subject.train_length, subject.offset
    near = pair_kernels(model, symbols, seen - 1)
    far = pair_kernels(model, symbols, subject.longest - 1)
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
    if subject.longest > seen:
        facts |= {"alias": long[:, seen:].argmax(-1) + seen, "alias_value": long[:, seen:].amax(-1)}
    if k is not None:
        others = mean.clone()
        others[:, k] = float("-inf")
        facts["margin_at_offset"] = mean[:, k] - others.amax(-1)
        if subject.longest > seen:
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
    """The kernel near and far, and where its energy lies."""
    from .drawing import mark, panels

    head, seen, k = result["heads"][0], result["train_length"], result["offset"]
    fig, axes = panels(3 if "energy" in head else 2)
    kernel, spread = np.array(head["kernel"]), np.array(head["spread"])
    near = min(2 * seen, len(kernel))
    for ax, n, title in ((axes[0], near, "near"), (axes[1], len(kernel), "all evaluated offsets")):
        offsets = np.arange(n)
        ax.fill_between(offsets, (kernel - spread)[:n], (kernel + spread)[:n], alpha=0.2, lw=0, label="± sd over pairs")
        ax.plot(offsets, kernel[:n], lw=1.3, marker="o" if n == near else "", ms=3, label="mean over pairs")
        mark(ax, seen, k)
        if "alias" in head and head["alias"] < n:
            ax.plot(head["alias"], head["alias_value"], "v", color="#D55E00", label=f"alias at {head['alias']}")
        ax.set(xlabel="offset δ (tokens)", ylabel="κ(δ) (nats)", title=title)
        ax.legend(fontsize=7, frameon=False)
    axes[1].set_xscale("symlog", linthresh=16)
    if "energy" in head:
        colours = ["#0072B2" if value > 0 else "#D55E00" for value in head.get("in_phase", head["energy"])]
        axes[2].bar(range(len(head["energy"])), head["energy"], color=colours)
        aligned = f", alignment {head['alignment']:.2f}" if "alignment" in head else ""
        axes[2].set(xlabel="frequency, fastest first", ylabel="share of energy", title=f"blue: in phase at k{aligned}")
    fig.suptitle(f"carrier kernel: peak {head['peak']}, rank-one share {head['rank_one']:.2f} (centred)", fontsize=10)
    return fig
