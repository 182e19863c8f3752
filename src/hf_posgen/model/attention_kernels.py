"""Attention with a structured bias: softmax((q · k · scale + bias) · factor) v, by the cheapest kernel for the bias's kind.

| implementation | no bias, columns | by distance | pairwise |
|---|---|---|---|
| eager | all rows at once, written out: the readable reference | same | same |
| sdpa | one fused call, columns appended to q and k | chunks, the bias a view of a table | chunks, recomputed in backward |
| flex_attention | the same columns | `score_mod` | refused when the model is built |

A decay of channels goes into q and k, in spans of queries (almost always one) that no factor overflows in; what is left
has no bias.

Outside eager nothing of size L × L is ever held. A masked logit is chosen with `where`, never by adding.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .attention_bias import Bias, ByDistance, ChannelDecay, Columns
from .attention_call import HALF, AttentionCall
from .attention_mask import Visible
from .attention_toeplitz import ToeplitzAttention

CHUNK_ELEMENTS = 2**20  # of B × H × c × M at once: 4 MiB in float32
COPIED_ELEMENTS = 2**20  # of each of q, k and v

Kernel = Callable[[AttentionCall], torch.Tensor]


def attend(
    q_BHLK: torch.Tensor,
    k_BHMK: torch.Tensor,
    v_BHMK: torch.Tensor,
    *,
    queries,
    keys,
    visible: Visible,
    bias: Bias | None,
    scale: float,
    logit_scale,
    dropout: float = 0.0,
    implementation: str = "sdpa",
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the averaged values (B, H, L, K) and, from eager, the weights (B, H, L, M).

    `logit_scale` is a `LogitScale`; keys and values may have fewer heads than the queries (grouped).
    """
    groups = q_BHLK.shape[1] // k_BHMK.shape[1]
    if groups > 1:
        k_BHMK, v_BHMK = (t.repeat_interleave(groups, dim=1) for t in (k_BHMK, v_BHMK))
    call = AttentionCall(
        query_BHLK=q_BHLK,
        key_BHMK=k_BHMK,
        value_BHMV=v_BHMK,
        queries=queries,
        keys=keys,
        visible=visible,
        bias=bias,
        scale=scale,
        logit_scale=logit_scale,
        factor_BHL1=logit_scale(queries),
        dropout=dropout,
        width=v_BHMK.shape[-1],
    )
    if implementation == "eager":
        return written_out(call, 0, q_BHLK.shape[2])
    return choose_kernel(call, implementation)(call), None


def choose_kernel(call: AttentionCall, implementation: str) -> Kernel:
    """Return the cheapest of the kernels below that computes this call."""
    flex, dtype = implementation == "flex_attention", call.query_BHLK.dtype
    if call.needs_logits:
        return chunks_written_out
    if isinstance(call.bias, ChannelDecay):
        together = call.bias.rows_together(call.queries)
        if together is None:
            return chunks_with_bias
        return lambda call: spans_with_decay(call, together, implementation)
    if call.bias is None or isinstance(call.bias, Columns):
        # One query in float32 needs one row of bias; columns would copy all cached keys for it.
        row_is_cheaper = call.bias is not None and call.visible.length == 1 and dtype not in HALF and not flex
        if dtype == torch.float16 or row_is_cheaper:
            return chunks_with_bias
        if flex:
            return flex_with_columns
        causal = call.visible.only_causal and (call.visible.offset == 0 or call.visible.length == 1)
        return fused if causal else chunks_with_columns
    if flex:
        return flex_by_distance
    if isinstance(call.bias, ByDistance) and call.visible.only_causal and call.keys.sequential:
        return chunks_with_bias if call.factor_BHL1 is not None or call.dropout else toeplitz
    return chunks_with_bias


def written_out(call: AttentionCall, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of the definition itself, computed in float32 or better, and their weights."""
    dtype = call.queries.dtype
    slots = call.keys_before(stop)
    q, k = call.query_BHLK[:, :, start:stop].to(dtype), call.key_BHMK[:, :, :slots].to(dtype)
    logits = q @ k.transpose(-1, -2) * call.scale
    rows = call.rows(start, stop, slots, logits)
    if call.bias is not None:
        logits = logits + call.dense_bias(rows, start, stop)
    if call.factor_BHL1 is not None:
        logits = logits * call.factor_BHL1[:, :, start:stop]
    if call.logit_scale.adapts:
        logits = call.logit_scale.adapt(logits, rows.visible)
    weights = torch.where(rows.visible, logits, float("-inf")).softmax(-1)
    weights = F.dropout(weights, call.dropout).to(call.value_BHMV.dtype)
    return weights @ call.value_BHMV[:, :, :slots], weights


def chunks_written_out(call: AttentionCall) -> torch.Tensor:
    return in_chunks(call, lambda start, stop: written_out(call, start, stop)[0])


def chunks_with_bias(call: AttentionCall) -> torch.Tensor:
    """Chunks of rows with a mask that holds their bias."""

    def rows_with_bias(start: int, stop: int) -> torch.Tensor:
        slots = call.keys_before(stop)
        rows = call.rows(start, stop, slots)
        bias = 0.0 if call.bias is None else call.dense_bias(rows, start, stop)
        q = call.query_BHLK[:, :, start:stop].to(call.queries.dtype)
        if call.factor_BHL1 is not None:
            factor = call.factor_BHL1[:, :, start:stop]
            bias, q = bias * factor, q * factor
        return _masked(call, q, slots, torch.where(rows.visible, bias, float("-inf")))

    return in_chunks(call, rows_with_bias)


def chunks_with_columns(call: AttentionCall) -> torch.Tensor:
    """Chunks of rows with a mask of what they see, the bias in columns."""
    call = call.with_columns()

    def rows_with_mask(start: int, stop: int) -> torch.Tensor:
        slots = call.keys_before(stop)
        return _masked(call, call.query_BHLK[:, :, start:stop], slots, call.visible.rows(start, stop, slots))

    return in_chunks(call, rows_with_mask)


def spans_with_decay(call: AttentionCall, together: int, implementation: str) -> torch.Tensor:
    """Spans of `together` queries, the decay in q and k, each by whatever kernel is cheapest for it then."""
    length, out = call.query_BHLK.shape[2], []
    for start in range(0, length, together):
        span = call.decayed(start, min(start + together, length))
        out.append(choose_kernel(span, implementation)(span))
    return (torch.cat(out, dim=2) if len(out) > 1 else out[0]).to(call.value_BHMV.dtype)


def fused(call: AttentionCall) -> torch.Tensor:
    """One fused causal call; without gradients a few heads at a time, for columns copy q, k and v."""
    B, H, _, _ = call.query_BHLK.shape
    heads = max(1, COPIED_ELEMENTS // (B * call.key_BHMK.shape[2] * call.width))
    bare = call.bias is None and call.factor_BHL1 is None
    if bare or heads >= H or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return _causal(call.with_columns())
    out = torch.empty_like(call.query_BHLK, memory_format=torch.contiguous_format)
    for first in range(0, H, heads):
        out[:, first : first + heads] = _causal(call.of_heads(first, first + heads).with_columns())
    return out


def toeplitz(call: AttentionCall) -> torch.Tensor:
    """All rows, their bias a sliding window over one table."""
    dtype, device = call.queries.dtype, call.key_BHMK.device
    farthest_first = torch.arange(call.key_BHMK.shape[2] - 1, -1, -1, device=device)
    with torch.autocast(device.type, enabled=False):
        q, k, v = (t.to(dtype) for t in (call.query_BHLK, call.key_BHMK, call.value_BHMV))
        table_HM = call.bias.at(farthest_first).to(dtype)
        out = ToeplitzAttention.apply(q, k, v, table_HM, call.scale)
    return out.to(call.value_BHMV.dtype)


def flex_with_columns(call: AttentionCall) -> torch.Tensor:
    return flex_by_distance(call.with_columns())


def flex_by_distance(call: AttentionCall) -> torch.Tensor:
    from .attention_flex import flex  # compiles on import of torch's flex attention: only when asked for

    return flex(call)[..., : call.width]


def in_chunks(call: AttentionCall, kernel: Callable[[int, int], torch.Tensor]) -> torch.Tensor:
    """Run `kernel(start, stop)` over chunks of rows; in training each is recomputed in the backward pass."""
    B, H, L, _ = call.query_BHLK.shape
    rows = max(1, min(512, CHUNK_ELEMENTS // max(1, B * H * call.key_BHMK.shape[2])))
    if 4 * rows >= L:  # so little that it is kept sooner than computed again
        return kernel(0, L)
    trains = any(t.requires_grad for t in (call.query_BHLK, call.key_BHMK, call.value_BHMV))
    spans = [(start, min(start + rows, L)) for start in range(0, L, rows)]
    if torch.is_grad_enabled() and trains:
        return torch.cat([checkpoint(kernel, *span, use_reentrant=False) for span in spans], dim=2)
    return torch.cat([kernel(*span) for span in spans], dim=2)


def _causal(call: AttentionCall) -> torch.Tensor:
    q, k, v = call.query_BHLK, call.key_BHMK, call.value_BHMV
    causal = q.shape[2] > 1
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=call.scale, dropout_p=call.dropout)
    return out[..., : call.width]


def _masked(call: AttentionCall, q: torch.Tensor, slots: int, mask: torch.Tensor) -> torch.Tensor:
    k, v = (t[:, :, :slots].to(q.dtype) for t in (call.key_BHMK, call.value_BHMV))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=call.scale, dropout_p=call.dropout)
    return out[..., : call.width].to(call.value_BHMV.dtype)
