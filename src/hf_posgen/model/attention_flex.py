"""Flex attention: a bias by distance as a `score_mod`, what is seen as a block mask. Forward only on a CPU."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from .attention_mask import Visible

_compiled = torch.compile(flex_attention, dynamic=False)


def flex(call) -> torch.Tensor:
    """Return the averaged values (B, H, L, V) of an `AttentionCall` without a bias or with one by distance.

    Raises `ValueError` where it asks for dropout, which flex attention doesn't have.
    """
    if call.dropout:
        raise ValueError("flex_attention has no dropout: set attention_dropout to 0, or use sdpa")
    factor = call.factor_BHL1
    q = call.query_BHLK if factor is None else (call.query_BHLK * factor).to(call.query_BHLK.dtype)
    kernel = _compiled if q.is_cuda else flex_attention
    dtype = call.queries.dtype if call.bias is not None else q.dtype
    v = call.value_BHMV.to(dtype) if not q.is_cuda else call.value_BHMV
    q, k = (t.to(v.dtype) for t in (q, call.key_BHMK))
    out = kernel(q, k, v, score_mod=_score_mod(call, factor), block_mask=_block_mask(call.visible, q), scale=call.scale)
    return out.to(call.value_BHMV.dtype)


def _score_mod(call, factor):
    if call.bias is None:
        return None
    q_at, k_at = call.queries.positions_BL, call.keys.positions_BL
    q_at, k_at = (p.expand(call.query_BHLK.shape[0], -1).contiguous() for p in (q_at, k_at))
    longest = k_at.shape[1] if call.keys.sequential else int(q_at.max()) + 1
    table_HN = call.bias.at(torch.arange(longest, device=q_at.device)).contiguous()

    scale_BHL = None if factor is None else factor[..., 0].expand(*call.query_BHLK.shape[:3]).contiguous()

    def score_mod(score, b, h, row, column):
        bias = table_HN[h, (q_at[b, row] - k_at[b, column]).clamp(min=0)]
        return score + (bias if scale_BHL is None else bias * scale_BHL[b, h, row])

    return score_mod


def _block_mask(visible: Visible, q: torch.Tensor):
    offset, real, documents, prepared = visible.offset, visible.real_BM, visible.documents_BL, visible.prepared_B1LM

    def mask_mod(b, h, row, column):
        if prepared is not None:
            return prepared[b, 0, row, column] | (row + offset == column)
        seen = column <= row + offset
        if real is not None:
            seen = seen & real[b, column]
        if documents is not None:
            seen = seen & (documents[b, row + offset] == documents[b, column])
        return seen | (row + offset == column)

    rows = None if real is None and documents is None and prepared is None else q.shape[0]
    return create_block_mask(mask_mod, rows, None, visible.length, visible.slots, device=q.device)
