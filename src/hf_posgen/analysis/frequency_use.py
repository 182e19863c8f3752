"""Which rotary frequencies a head uses: the mean norm of queries and keys in each channel pair (Barbero et al. 2024, arXiv
2410.06205, section 4), over the tokens of sequences of the longest trained length; `untrained` beside it."""

import numpy as np
import torch

from .subject import NotApplicable, Subject, plain, rotary


@torch.no_grad()
def measure(subject: Subject) -> dict:
    subject.require_softmax()
    length = subject.train_length
    before = {} if subject.untrained is None else {v.layer: v for v in subject.views(length, 64, subject.untrained)}
    entries = []
    for view in subject.views(length, 64):
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
    pair = lambda x: torch.hypot(x[..., :half], x[..., half : 2 * half]).mean((0, 2))  # noqa: E731
    return pair(view.content_q_BHLK), pair(view.content_k_BHLK)


def figure(result: dict):
    from .drawing import COLOURS, head_name, panels

    fig, axes = panels(1, width=5.4)
    for entry, colour in zip(result["heads"], COLOURS * 9, strict=False):
        product = np.array(entry["query"]) * np.array(entry["key"])
        axes[0].plot(product, "o-", ms=3, lw=1.2, color=colour, label=head_name(entry))
        if "untrained" in entry:
            old = np.array(entry["untrained"]["query"]) * np.array(entry["untrained"]["key"])
            axes[0].plot(old, lw=0.9, ls=":", color=colour)
    axes[0].set(
        xlabel="frequency, fastest first", ylabel="mean |q_f| · mean |k_f|", title="frequency use (dotted: untrained)"
    )
    axes[0].legend(fontsize=7, frameon=False)
    return fig
