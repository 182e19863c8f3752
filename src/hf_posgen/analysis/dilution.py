"""Attention on the right key against length, and the accuracy that its dilution predicts.

The attention-dilution law of Singh, Mishra, Raut 2026 (arXiv 2607.18759; formulas *reconstructed*). The softmax mass on
the target at length L is α(L) = 1 / (1 + c (L - 1)), c the mean over δ ≠ k of exp(κ(δ) - κ(k)). With c measured at the
same L that is an identity, so c is fitted on the trained lengths (least squares of 1/α - 1 on L - 1, through the origin)
and the law is tested beyond, with c frozen.

- c_inside: the fit on the trained lengths; c_beyond: the same fit on the longer lengths alone.
- r2_inside, r2_beyond: R² of these two fits where they were made; r2_frozen: of c_inside on the longer lengths.
- alpha, alpha_law, alpha_over_law: α as measured, as the frozen c says, and the one over the other, by length.
- accuracy: at the last query, as measured and as predicted in three ways by Monte Carlo over the task's sequences, through
  the model's own values, output projection and head: `c_alone` puts α(L) from the frozen c on the target and spreads the
  rest evenly; `mean_kernel` takes softmax κ(δ) for every sequence; `full_kernel` takes softmax κ_{c,c'}(δ) of the tokens
  that stand there; `measured` is the model on the same sequences. The claim is about c alone.
- largest_error: of each prediction, over the lengths.

For one layer with one head.
"""

import numpy as np
import torch

from ..plotting import COLOURS, legend_below, side_by_side, trained_lengths
from .context import AnalysisContext, NotApplicable, plain
from .kernel import mean_kernel, pair_kernels

SOURCES = {  # of an accuracy, as a figure names them
    "measured": "measured",
    "full_kernel": "from each pair's kernel",
    "mean_kernel": "from the mean kernel",
    "c_alone": "from c alone",
}
PREDICTIONS = tuple(SOURCES)


@torch.no_grad()
def measure(context: AnalysisContext, sequences: int = 1024) -> dict:
    layer, k = context.require_one_layer(), context.require_offset()
    if context.task.bos:
        raise NotApplicable("defined without an anchor token")
    if "output" in type(layer.self_attn.position_encoding or context.model.model.position_encoding).sites():
        raise NotApplicable("the encoding also acts on the averaged values")
    lengths, inside = context.lengths, [n for n in context.lengths if n <= context.train_length]
    beyond = [n for n in lengths if n > context.train_length]
    alpha = {n: _mass_on_target(context, n, sequences) for n in lengths}
    fits = {"inside": fit(inside, alpha), "beyond": fit(beyond, alpha) if beyond else None}
    c = fits["inside"]["c"]
    law = {n: 1 / (1 + c * (n - 1)) for n in lengths}
    accuracy = [_accuracies(context, n, law[n], sequences) for n in lengths]
    return {
        "offset": k,
        "train_length": context.train_length,
        "lengths": lengths,
        "alpha": [alpha[n] for n in lengths],
        "alpha_law": [law[n] for n in lengths],
        "alpha_over_law": [alpha[n] / law[n] for n in lengths],
        "c_inside": c,
        "r2_inside": fits["inside"]["r2"],
        "c_beyond": fits["beyond"] and fits["beyond"]["c"],
        "r2_beyond": fits["beyond"] and fits["beyond"]["r2"],
        "r2_frozen": r_squared(beyond, alpha, c) if beyond else None,
        "accuracy": {name: [one[name] for one in accuracy] for name in PREDICTIONS},
        "largest_error": {
            name: max(abs(one[name] - one["measured"]) for one in accuracy)
            for name in PREDICTIONS
            if name != "measured"
        },
    }


def fit(lengths: list[int], alpha: dict[int, float]) -> dict:
    """c of 1/α - 1 = c (L - 1) by least squares through the origin, and R² about the mean."""
    x = torch.tensor([n - 1.0 for n in lengths], dtype=torch.float64)
    y = torch.tensor([1 / max(alpha[n], 1e-12) - 1 for n in lengths], dtype=torch.float64)
    c = float((x * y).sum() / (x * x).sum())
    return {"c": c, "r2": r_squared(lengths, alpha, c)}


def r_squared(lengths: list[int], alpha: dict[int, float], c: float) -> float | None:
    """Of 1/α - 1 = c (L - 1); None where all lengths are alike."""
    x = torch.tensor([n - 1.0 for n in lengths], dtype=torch.float64)
    y = torch.tensor([1 / max(alpha[n], 1e-12) - 1 for n in lengths], dtype=torch.float64)
    total = (y - y.mean()).square().sum()
    return plain(float(1 - (y - c * x).square().sum() / total)) if total > 0 else None


def _mass_on_target(context: AnalysisContext, length: int, count: int) -> float:
    total = 0.0
    for tokens, _ in context.batches(length, count):
        view = context.view_of(tokens)
        total += float(view.last_logits().softmax(-1)[:, 0, context.target_key(length)].sum())
    return total / count


def _accuracies(context: AnalysisContext, length: int, alpha: float, count: int) -> dict[str, float]:
    """Of the model and of the three predictions, on the same sequences."""
    k = context.offset
    kernels = pair_kernels(context.model, context.require_symbols(), length - 1)
    kernel = kernels[0]
    even = torch.full((length,), (1 - alpha) / max(1, length - 1))
    even[length - 1 - k] = alpha
    mean = mean_kernel(kernels)[0].flip(-1).softmax(-1)
    right = dict.fromkeys(PREDICTIONS, 0)
    for tokens, answers in context.batches(length, count):
        view = context.view_of(tokens)
        back = torch.arange(length - 1, -1, -1)
        full = kernel[tokens[:, -1:], tokens, back].softmax(-1)
        weights = {
            "measured": view.last_logits()[:, 0].softmax(-1),
            "full_kernel": full,
            "mean_kernel": mean.expand(len(tokens), -1),
            "c_alone": even.expand(len(tokens), -1),
        }
        for name, weights_BM in weights.items():
            right[name] += int((last_prediction(context.model, view, weights_BM) == answers).sum())
    return {name: number / count for name, number in right.items()}


def last_prediction(model, view, weights_BM: torch.Tensor) -> torch.Tensor:
    """(B,): what a one-layer, one-head model says at the last place if its attention were `weights_BM`."""
    layer = model.model.layers[view.layer]
    averaged = torch.einsum("bm,bmk->bk", weights_BM, view.v_BHLK[:, 0])
    hidden = view.residual_BLD[:, -1] + layer.self_attn.o_proj(averaged)
    if layer.mlp is not None:
        hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
    return model.lm_head(model.model.norm(hidden)).argmax(-1)


def figure(result: dict):
    """Draw 1/α - 1 against L - 1 with the fits, α itself, and the predicted accuracies."""
    figure, axes = side_by_side(3)
    lengths = np.array(result["lengths"])
    axes[0].loglog(lengths - 1, 1 / np.array(result["alpha"]) - 1, "o", ms=4, color=COLOURS[0], label="measured")
    fits = (("trained lengths", result["c_inside"], "-"), ("longer lengths", result["c_beyond"], "--"))
    for where, c, dash in fits:
        if c:
            label = f"fit on {where}, c = {c:.3g}"
            axes[0].loglog(lengths - 1, c * (lengths - 1), dash, lw=1, color=COLOURS[1], label=label)
    axes[0].set(xlabel="L - 1 (tokens)", ylabel="1/α - 1", title="dilution law")
    axes[1].plot(lengths, result["alpha"], "o-", ms=4, color=COLOURS[0], label="measured")
    axes[1].plot(lengths, result["alpha_law"], lw=1, color=COLOURS[1], label="law, c of trained lengths")
    axes[1].set(ylim=(0, 1.04), ylabel="α(L)", title="attention on the right key")
    draw_predictions(axes[2], lengths, result["accuracy"])
    for ax in axes[1:]:
        trained_lengths(ax, lengths, result["train_length"])
    for ax in axes:
        legend_below(ax)
    return figure


def draw_predictions(ax, lengths, accuracy: dict) -> None:
    """Draw the measured accuracy and its predictions by length."""
    for (name, values), colour in zip(accuracy.items(), COLOURS, strict=False):
        dash = "--" if name == "full_kernel" else "-"  # it lies on the measured one: let both be seen
        ax.plot(lengths, values, dash, marker="o", ms=3, lw=1.3, color=colour, label=SOURCES[name])
    ax.set(ylim=(0, 1.04), ylabel="accuracy at the last query", title="accuracy, measured and predicted")
