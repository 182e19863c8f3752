"""How much the logits change when all positions shift by the same amount.

After Singh, Mishra, Raut 2026 (arXiv 2607.18759), who prove that RoPE's do not; the measure is *reconstructed*.

- float32, float64: max |logits(positions + s) - logits(positions)| / max |logits| for each shift s of `shifts`, in both
  precisions: what shrinks in float64 was rounding. A shift past the end of a learned table has no value.
- equivariant: whether every error in float32 is at most `tolerance`.

A necessary property, not a diagnosis: models without positions, with ALiBi or T5 pass too.
"""

import copy

import torch

from ..plotting import COLOURS, legend_below, side_by_side
from .context import AnalysisContext

SHIFTS = (1, 10, 100, 1000, 10_000, 100_000)  # tokens
TOLERANCE = 1e-5


@torch.no_grad()
def measure(context: AnalysisContext) -> dict:
    tokens, _ = context.sequences(context.train_length, 32)
    double = copy.deepcopy(context.model).double()
    errors = {name: shift_errors(model, tokens) for name, model in (("float32", context.model), ("float64", double))}
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
    """Draw the error against the shift, in both precisions."""
    figure, (ax,) = side_by_side(1, width=5)
    for name, marker, colour in (("float32", "o", COLOURS[0]), ("float64", "s", COLOURS[1])):
        known = [(s, max(e, 1e-18)) for s, e in zip(result["shifts"], result[name], strict=True) if e is not None]
        if known:
            ax.loglog(*zip(*known, strict=True), marker=marker, ms=4, color=colour, label=name)
    ax.axhline(result["tolerance"], color="#555555", lw=0.9, ls="--", label="tolerance")
    ax.set(xlabel="shift of all positions (tokens)", ylabel="largest change of a logit, relative")
    ax.set_title("equivariance error")
    legend_below(ax, 3)
    return figure
