"""How many directions the queries and keys of a head share: the effective rank of W_Q^T W_K.

- effective_rank: exp of the entropy of the product's singular values, normalised to sum 1 (Roy and Vetterli 2007): 1 for
  a matrix of rank one, the head's width for a multiple of the identity.
- first_share: the share of the squared singular values that the first holds.
- singular_values: all of them, as shares of their sum. `untrained` is the effective rank of the model at its start.

A low-rank *kernel* does not need low-rank weights: compare with the carrier kernel's rank-one share.
"""

import torch

from ..plotting import legend_below, side_by_side
from .context import AnalysisContext, NotApplicable, head_name, per_head


@torch.no_grad()
def measure(context: AnalysisContext) -> dict:
    heads = _heads(context.model)
    if not heads:
        raise NotApplicable("no layer of this model has queries that meet keys")
    before = {} if context.untrained is None else {(e["layer"], e["head"]): e for e in _heads(context.untrained)}
    for entry in heads:
        entry["untrained"] = before.get((entry["layer"], entry["head"]), {}).get("effective_rank")
    return {"head_dim": context.model.config.head_dim, "heads": heads}


def _heads(model) -> list[dict]:
    layers = [(i, layer.self_attn) for i, layer in enumerate(model.model.layers) if hasattr(layer.self_attn, "q_proj")]
    return [entry for i, attention in layers for entry in per_head(i, ranks(attention))]


def ranks(attention) -> dict[str, torch.Tensor]:
    """Singular values of W_Q^T W_K are those of R_Q R_K^T, the triangular factors of the tall W_Q^T and W_K^T."""
    size = attention.config.head_dim
    q = attention.q_proj.weight.double().unflatten(0, (-1, size))
    k = attention.k_proj.weight.double().unflatten(0, (-1, size))
    k = k.repeat_interleave(len(q) // len(k), dim=0)
    values = torch.linalg.svdvals(torch.linalg.qr(q.mT).R @ torch.linalg.qr(k.mT).R.mT)
    share = values / values.sum(-1, keepdim=True)
    return {
        "effective_rank": effective_rank(values),
        "first_share": values[:, 0].square() / values.square().sum(-1),
        "singular_values": share,
    }


def effective_rank(values: torch.Tensor) -> torch.Tensor:
    share = values / values.sum(-1, keepdim=True)
    return (-(share * share.clamp(min=1e-300).log()).sum(-1)).exp()


def figure(result: dict):
    """Draw the spectrum of every head."""
    figure, (ax,) = side_by_side(1, width=5)
    for entry in result["heads"]:
        label = f"{head_name(entry)}: effective rank {entry['effective_rank']:.1f} of {result['head_dim']}"
        ax.semilogy(entry["singular_values"], lw=1.2, label=label)
    ax.set(xlabel="index", ylabel="singular value, share of the sum", ylim=(1e-6, 1), title="spectrum of W_Q^T W_K")
    legend_below(ax, 1)
    return figure
