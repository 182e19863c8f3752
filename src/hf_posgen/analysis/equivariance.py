"""Equivariance error: max |logits(positions + s) - logits(positions)| / max |logits|, by shift s (after Singh, Mishra, Raut
2026, arXiv 2607.18759, who prove that RoPE's is 0; the measure is *reconstructed*).

In float32 and in float64: what shrinks in float64 was rounding. A shift past the end of a learned table has no value. A
necessary property, not a diagnosis: models without positions, with ALiBi or T5 pass too.
"""

import copy

import torch

from .subject import Subject

SHIFTS = (1, 10, 100, 1000, 10_000, 100_000)  # tokens
TOLERANCE = 1e-5


@torch.no_grad()
def measure(subject: Subject) -> dict:
    tokens, _ = subject.sequences(subject.train_length, 32)
    double = copy.deepcopy(subject.model).double()
    errors = {name: shift_errors(model, tokens) for name, model in (("float32", subject.model), ("float64", double))}
    known = [value for value in errors["float32"] if value is not None]
    return {
        "shifts": list(SHIFTS),
        "equivariant": bool(known) and max(known) <= TOLERANCE,
        "tolerance": TOLERANCE,
    } | errors


@torch.no_grad()
def shift_errors(model, tokens: torch.Tensor, shifts=SHIFTS) -> list[float | None]:
    positions = torch.arange(tokens.shape[1])[None]
    plain = model(input_ids=tokens, positions=positions, use_cache=False).logits
    errors = []
    for shift in shifts:
        try:
            moved = model(input_ids=tokens, positions=positions + shift, use_cache=False).logits
        except ValueError:  # past a learned table
            errors.append(None)
            continue
        errors.append(float((moved - plain).abs().max() / plain.abs().max()))
    return errors


def figure(result: dict):
    from .drawing import panels

    fig, axes = panels(1, width=5)
    for name, marker in (("float32", "o"), ("float64", "s")):
        known = [(s, max(e, 1e-18)) for s, e in zip(result["shifts"], result[name], strict=True) if e is not None]
        if known:
            axes[0].loglog(*zip(*known, strict=True), marker=marker, ms=4, label=name)
    axes[0].axhline(result["tolerance"], color="#555555", lw=0.9, ls="--", label="tolerance")
    axes[0].set(
        xlabel="shift of all positions (tokens)",
        ylabel="largest change of a logit, relative",
        title="equivariance error",
    )
    axes[0].legend(fontsize=8, frameon=False)
    return fig
