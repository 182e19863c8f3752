"""Which rotary frequencies a head uses.

- query, key: the mean norm of the queries, and of the keys, in each channel pair (Barbero et al. 2024, arXiv 2410.06205,
  section 4), over the tokens of sequences of the longest trained length; `untrained` is the same of the model at its start.
- frequencies: of the pairs, in radians per token.
"""

import numpy as np
import torch

from ..plotting import COLOURS, legend_below, side_by_side
from .context import AnalysisContext, NotApplicable, head_name, plain, rotary


@torch.no_grad()
def measure(context: AnalysisContext) -> dict:
    context.require_softmax()
    length = context.train_length
    before = {} if context.untrained is None else {v.layer: v for v in context.views(length, 64, context.untrained)}
    entries = []
    for view in context.views(length, 64):
        if rotary(view.encoding) is None:
            continue
        q, k = norms(view)
        old = norms(before[view.layer]) if view.layer in before else (None, None)
        for head in range(len(q)):
            entry = {"layer": view.layer, "head": head, "frequencies": plain(view.encoding.frequencies())}
            entry |= {"query": plain(q[head]), "key": plain(k[head])}
            if old[0] is not None:
                entry["untrained"] = {"query": plain(old[0][head]), "key": plain(old[1][head])}
            entries.append(entry)
    if not entries:
        raise NotApplicable("no layer turns its queries and keys by fixed frequencies")
    return {"heads": entries}


def norms(view) -> tuple[torch.Tensor, torch.Tensor]:
    """(H, F) each: the mean length of pair f of the queries, and of the keys."""
    half = view.encoding.rotated // 2
    return tuple(
        torch.hypot(content[..., :half], content[..., half : 2 * half]).mean((0, 2))
        for content in (view.content_q_BHLK, view.content_k_BHLK)
    )


def figure(result: dict):
    """Draw the product of both norms by frequency for every head, trained and untrained."""
    figure, (ax,) = side_by_side(1, width=5.4)
    for i, entry in enumerate(result["heads"]):
        colour = COLOURS[i % len(COLOURS)]
        ax.plot(np.multiply(entry["query"], entry["key"]), "o-", ms=3, lw=1.2, color=colour, label=head_name(entry))
        if before := entry.get("untrained"):
            label = "untrained" if i == 0 else None
            ax.plot(np.multiply(before["query"], before["key"]), lw=0.9, ls=":", color=colour, label=label)
    ax.set(xlabel="frequency, fastest first", ylabel="mean |q_f| · mean |k_f|", title="frequency use")
    legend_below(ax, 3)
    return figure
