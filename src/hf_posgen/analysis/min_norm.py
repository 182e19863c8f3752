"""The least-norm kernel that solves the task on the trained offsets, beside the learned one.

The control of Singh, Mishra, Raut 2026 (arXiv 2607.18759) with linear attention; *reconstructed*. Features of an offset:
φ(δ) = [cos θ_f δ, sin θ_f δ]. a* = Φ⁺ e_k gives the least-norm kernel that is 1 at the task's offset k and 0 at the other
trained ones, by SVD of Φ (trained offsets × 2F) in float64; singular values below `cutoff` · the largest are left out.
(The normal equations would square a condition number that is beyond float64 already.) For each cutoff:

- exact: by grid, the numbers below at the smallest cutoff, where the interpolant solves the trained offsets best.
- norm: of a*; kept: how many singular values; condition: the largest over the smallest; residual: on the trained offsets.
- largest_beyond: the largest value beyond the trained offsets, relative to the value at k: below 1 the interpolant still
  picks k there. picks_k_up_to: the longest sequence in which the largest value stands at k.
- correlation_inside, correlation_beyond: of the learned kernel κ (centred) with the interpolant, inside and beyond the
  trained offsets. Without softmax κ and -κ are one map (the values carry the sign), and κ is taken with κ(k) > 0.

Grids of frequencies: "geometric" (base of the model's rotary encoding, or 10000), "linear" (1/F ... F/F radians per token,
the rotary option of that name) and "full_band" (linear to π, all that whole offsets can tell apart); "own" is the model's.
On the first two the trained offsets see a band too narrow, and the exact interpolant's norm is enormous; on the third it
extrapolates until its period 2F.
"""

import numpy as np
import torch

from ..model.encodings_absolute import inverse_frequencies
from ..model.mixer_linear import LinearAttention
from ..plotting import COLOURS, legend_below, side_by_side, trained_offsets
from .context import AnalysisContext, NotApplicable, plain, rotary
from .kernel import mean_kernel, pair_kernels

CUTOFFS = (1e-14, 1e-10, 1e-6, 1e-3, 1e-2)
TITLES = {
    "geometric": "geometric frequencies, as RoPE's",
    "linear": "frequencies spread evenly up to 1",
    "full_band": "frequencies spread evenly up to π",
    "own": "the model's own frequencies",
}
SHOWN = 256  # offsets whose values are kept and drawn


@torch.no_grad()
def measure(context: AnalysisContext) -> dict:
    k, seen, longest = context.require_offset(), context.train_length, context.longest
    layer = context.model.model.layers[0].self_attn
    encoding = rotary(getattr(layer, "position_encoding", None) or context.model.model.position_encoding)
    learned = learned_kernel(context, longest)
    if learned is not None and isinstance(layer, LinearAttention) and learned[k] < 0:
        learned = -learned
    pairs = context.model.config.head_dim // 2
    grids = {
        "geometric": inverse_frequencies(2 * pairs, getattr(encoding, "base", 10000.0)),
        "linear": torch.arange(pairs, 0, -1, dtype=torch.float64) / pairs,
        "full_band": torch.arange(pairs, 0, -1, dtype=torch.float64) / pairs * torch.pi,
    }
    out = {
        "offset": k,
        "train_length": seen,
        "longest": longest,
        "learned": None if learned is None else plain(learned),
    }
    out["grids"] = {name: _grid(frequencies, k, seen, longest, learned) for name, frequencies in grids.items()}
    if encoding is not None:
        own = encoding.frequencies()
        out["grids"]["own"] = _grid(own, k, seen, longest, learned)
        alike = [name for name, grid in grids.items() if grid.shape == own.shape and torch.allclose(grid, own)]
        out["own_grid"] = alike[0] if alike else "own"
    keys = ("norm", "residual", "picks_k_up_to", "correlation_beyond")
    out["exact"] = {name: {key: grid["by_cutoff"][0].get(key) for key in keys} for name, grid in out["grids"].items()}
    return out


def learned_kernel(context: AnalysisContext, longest: int) -> torch.Tensor | None:
    """The first layer's mean κ(δ), heads averaged; None where it has none."""
    try:
        return mean_kernel(pair_kernels(context.model, context.require_symbols(), longest - 1)).mean(0).double()
    except NotApplicable:
        return None


def features(frequencies: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """(δ, 2F) cosines and sines."""
    angles = offsets.double()[:, None] * frequencies
    return torch.cat([angles.cos(), angles.sin()], -1)


def interpolant(frequencies: torch.Tensor, k: int, seen: int, cutoff: float) -> dict:
    """The least-norm coefficients (2F,), how many singular values they use, their norm, and the residual on 0..seen-1."""
    phi = features(frequencies, torch.arange(seen))
    left, values, right = torch.linalg.svd(phi, full_matrices=False)
    kept = values > cutoff * values[0]
    target = torch.zeros(seen, dtype=torch.float64)
    target[k] = 1.0
    coefficients = right[kept].T @ ((left[:, kept].T @ target) / values[kept])
    residual = phi @ coefficients - target
    return {
        "coefficients": coefficients,
        "kept": int(kept.sum()),
        "norm": float(coefficients.norm()),
        "residual": float(residual.norm()),
        "condition": float(values[0] / values[-1].clamp(min=1e-300)),
    }


def _grid(frequencies, k: int, seen: int, longest: int, learned) -> dict:
    entries = []
    for cutoff in CUTOFFS:
        facts = interpolant(frequencies, k, seen, cutoff)
        curve = features(frequencies, torch.arange(longest)) @ facts.pop("coefficients")
        entry = {"cutoff": cutoff} | facts | {"kernel": curve[:SHOWN].tolist()}
        if longest > seen:
            entry["largest_beyond"] = float(curve[seen:].max() / curve[k])
            entry["picks_k_up_to"] = _picks_up_to(curve, k)
        if learned is not None:
            entry["correlation_inside"] = correlation(curve[:seen], learned[:seen])
            entry["correlation_beyond"] = correlation(curve[seen:], learned[seen:]) if longest > seen + 1 else None
        entries.append(entry)
    return {"by_cutoff": entries}


def _picks_up_to(curve: torch.Tensor, k: int) -> int:
    """The longest sequence in which the largest value still stands at k."""
    rivals = (curve >= curve[k]).nonzero()[:, 0]
    rivals = rivals[rivals != k]
    return int(rivals[0]) if len(rivals) else len(curve)


def correlation(a: torch.Tensor, b: torch.Tensor) -> float | None:
    a, b = a - a.mean(), b - b.mean()
    size = a.norm() * b.norm()
    return float(a @ b / size) if size > 0 else None


def figure(result: dict):
    """Draw the interpolants of each grid, scaled to 1 at k, and the learned kernel on the model's own grid."""
    own, k = result.get("own_grid", "own"), result["offset"]
    shown = {name: grid for name, grid in result["grids"].items() if name != "own" or own == "own"}
    figure, axes = side_by_side(len(shown), width=5, columns=2)
    for ax, (name, grid) in zip(axes, shown.items(), strict=True):
        for entry, colour, dash in zip(
            (grid["by_cutoff"][0], grid["by_cutoff"][3]), COLOURS, ("-", "--"), strict=False
        ):
            curve = np.array(entry["kernel"])
            label = (
                f"least norm, cutoff {entry['cutoff']:g}: norm {entry['norm']:.2g}, residual {entry['residual']:.2g}"
            )
            ax.plot(np.clip(curve / curve[k], -3, 3), ls=dash, lw=1, color=colour, label=label)
        if result["learned"] is not None and name == own:
            learned = np.array(result["learned"])[:SHOWN]
            learned = learned / np.abs(learned[: result["train_length"]]).max()
            ax.plot(learned, color="black", lw=1.2, label="learned kernel κ, 1 at its largest trained value")
        trained_offsets(ax, result["train_length"], k)
        ax.set(title=TITLES[name], xlabel="offset δ from key to query (tokens)", ylabel="kernel, 1 at k (cut at ±3)")
        ax.set_xscale("symlog", linthresh=16, base=2)
        ax.xaxis.set_major_formatter("{x:g}")
        legend_below(ax, 1)
    return figure
