"""Attention with a structured bias: softmax((q · k · scale + bias) · factor) v, by the cheapest road for the bias's kind.

| implementation | no bias, columns | by distance | pairwise |
|---|---|---|---|
| eager | all rows at once, written out: the readable reference | same | same |
| sdpa | one fused call, columns appended to q and k | chunks, the bias a view of a table | chunks, recomputed in backward |
| flex_attention | the same columns | `score_mod` | refused when the model is built |

Outside eager nothing of size L × L is ever held. A masked logit is chosen with `where`, never by adding.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .attention_bias import Bias, ByDistance, Columns, Rows
from .attention_mask import Visible
from .attention_toeplitz import ToeplitzAttention

CHUNK_ELEMENTS = 2**20  # of B × H × c × M at once: 4 MiB in float32
COPIED_ELEMENTS = 2**20  # of each of q, k and v
HALF = (torch.bfloat16, torch.float16)


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
    """Returns the averaged values (B, H, L, K) and, from eager, the weights (B, H, L, M).

    `logit_scale` is a `LogitScale`; keys and values may have fewer heads than the queries (grouped).
    """
    groups = q_BHLK.shape[1] // k_BHMK.shape[1]
    if groups > 1:
        k_BHMK, v_BHMK = (t.repeat_interleave(groups, dim=1) for t in (k_BHMK, v_BHMK))
    call = _Call(q_BHLK, k_BHMK, v_BHMK, queries, keys, visible, bias, scale, logit_scale, dropout)
    if implementation == "eager":
        return call.written_out(0, q_BHLK.shape[2])
    if call.needs_logits:
        return call.in_chunks(lambda start, stop: call.written_out(start, stop)[0]), None
    columns = bias is None or isinstance(bias, Columns)
    # One query in float32 needs one row of bias; columns would copy all cached keys for it.
    one_row = bias is not None and visible.length == 1 and q_BHLK.dtype not in HALF
    if columns and q_BHLK.dtype != torch.float16 and not (one_row and implementation == "sdpa"):
        if implementation == "flex_attention":
            return call.with_columns().flex(), None
        if visible.only_causal and (visible.offset == 0 or visible.length == 1):
            return call.fused(), None
        call = call.with_columns()
        return call.in_chunks(call.masked), None
    if implementation == "flex_attention" and not columns:
        return call.flex(), None
    counted = visible.only_causal and keys.sequential
    if isinstance(bias, ByDistance) and counted and not call.factor_varies and not dropout:
        return call.toeplitz(), None
    return call.in_chunks(call.biased), None


class _Call:
    """One call of `attend`: its tensors, and one method per road."""

    def __init__(self, q, k, v, queries, keys, visible, bias, scale, logit_scale, dropout):
        self.q, self.k, self.v = q, k, v
        self.queries, self.keys, self.visible = queries, keys, visible
        self.bias, self.scale, self.logit_scale, self.dropout = bias, scale, logit_scale, dropout
        self.width = v.shape[-1]
        self.factor = logit_scale.factor(queries)
        self.factor_varies = self.factor is not None
        self.adapts = logit_scale.adapts
        self.needs_logits = self.adapts or (bias is not None and bias.needs_logits)

    def changed(self, **fields) -> "_Call":
        other = copy.copy(self)
        other.__dict__.update(fields)
        return other

    def in_chunks(self, road) -> torch.Tensor:
        """Run `road(start, stop)` over chunks of rows; in training each is recomputed in the backward pass."""
        B, H, L, _ = self.q.shape
        rows = max(1, min(512, CHUNK_ELEMENTS // max(1, B * H * self.k.shape[2])))
        if 4 * rows >= L:  # so little that it is kept sooner than computed again
            return road(0, L)
        again = torch.is_grad_enabled() and any(t.requires_grad for t in (self.q, self.k, self.v))
        run = (lambda *span: checkpoint(road, *span, use_reentrant=False)) if again else road
        return torch.cat([run(start, min(start + rows, L)) for start in range(0, L, rows)], dim=2)

    def reach(self, stop: int) -> int:
        """How many keys the queries before `stop` can see at most."""
        return self.visible.offset + stop if self.visible.aligned else self.k.shape[2]

    def rows(self, start: int, stop: int, slots: int, logits=None) -> Rows:
        q, k = self.q[:, :, start:stop], self.k[:, :, :slots]
        queries, keys = self.queries.rows(start, stop), self.keys.rows(0, slots)
        return Rows(queries, keys, q, k, self.scale, self.visible.rows(start, stop, slots), logits)

    def dense_bias(self, rows: Rows, start: int, stop: int) -> torch.Tensor:
        bias = self.bias.rows(start, stop).dense(rows)
        return bias[..., : rows.key_BHMK.shape[2]]

    def written_out(self, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of the definition itself, in float32 or better."""
        work = self.queries.dtype
        slots = self.reach(stop)
        logits = self.q[:, :, start:stop].to(work) @ self.k[:, :, :slots].to(work).transpose(-1, -2) * self.scale
        rows = self.rows(start, stop, slots, logits)
        if self.bias is not None:
            logits = logits + self.dense_bias(rows, start, stop)
        if self.factor is not None:
            logits = logits * self.factor[:, :, start:stop]
        if self.adapts:
            logits = self.logit_scale.adapt(logits, rows.visible)
        weights = torch.where(rows.visible, logits, float("-inf")).softmax(-1)
        weights = F.dropout(weights, self.dropout)
        out = weights.to(self.v.dtype) @ self.v[:, :, :slots]
        return out, weights.to(self.v.dtype)

    def with_columns(self) -> "_Call":
        """This call with the bias moved into extra columns of q and k, and q, k, v padded to one width, a multiple of 8:
        anything else loses the fused kernel. The factor multiplies q and the query's columns."""
        scale = _power_of_two(self.scale) if self.q.dtype in HALF else 1.0
        q = self.q * (self.scale / scale) if self.scale != scale else self.q
        q_parts, k_parts = [q], [self.k]
        if self.factor is not None:
            q_parts = [(q.to(self.factor.dtype) * self.factor).to(q.dtype)]
        if self.bias is not None:
            columns = self.bias.query_BHLC if self.factor is None else self.bias.query_BHLC * self.factor
            for extra_q, extra_k in _exact_columns(columns / scale, self.bias.key_BHMC, q.dtype):
                q_parts.append(extra_q.expand(*q.shape[:3], -1))
                k_parts.append(extra_k.expand(*self.k.shape[:3], -1))
        if self.bias is None and self.factor is None:
            return self
        width = sum(part.shape[-1] for part in q_parts)
        width += -width % 8
        q, k, v = (_beside(parts, width) for parts in (q_parts, k_parts, [self.v]))
        return self.changed(q=q, k=k, v=v, scale=scale, factor=None, bias=None)

    def fused(self) -> torch.Tensor:
        """One fused call; without gradients a few heads at a time, for columns copy q, k and v."""
        B, H, L, _ = self.q.shape
        together = max(1, COPIED_ELEMENTS // (B * self.k.shape[2] * self.width))
        bare = self.bias is None and self.factor is None
        if bare or together >= H or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return self.with_columns()._causal()
        out = torch.empty_like(self.q, memory_format=torch.contiguous_format)
        for first in range(0, H, together):
            out[:, first : first + together] = self.of_heads(first, first + together).with_columns()._causal()
        return out

    def _causal(self) -> torch.Tensor:
        causal = self.q.shape[2] > 1
        out = F.scaled_dot_product_attention(
            self.q, self.k, self.v, is_causal=causal, scale=self.scale, dropout_p=self.dropout
        )
        return out[..., : self.width]

    def of_heads(self, first: int, last: int) -> "_Call":
        """This call for some heads alone; what all share has one."""
        part = lambda t: t if t is None or t.shape[1] == 1 else t[:, first:last]  # noqa: E731
        bias = None if self.bias is None else Columns(part(self.bias.query_BHLC), part(self.bias.key_BHMC))
        return self.changed(q=part(self.q), k=part(self.k), v=part(self.v), bias=bias, factor=part(self.factor))

    def masked(self, start: int, stop: int) -> torch.Tensor:
        """Rows with a mask and nothing else."""
        slots = self.reach(stop)
        mask = self.visible.rows(start, stop, slots)
        return self._call(self.q[:, :, start:stop], slots, mask)

    def biased(self, start: int, stop: int) -> torch.Tensor:
        """Rows with a bias that is written out for them alone."""
        slots = self.reach(stop)
        rows = self.rows(start, stop, slots)
        bias = 0.0 if self.bias is None else self.dense_bias(rows, start, stop)
        q = self.q[:, :, start:stop].to(self.queries.dtype)
        if self.factor is not None:
            bias, q = bias * self.factor[:, :, start:stop], q * self.factor[:, :, start:stop]
        return self._call(q, slots, torch.where(rows.visible, bias, float("-inf")))

    def toeplitz(self) -> torch.Tensor:
        """All rows, their bias a sliding window over one table."""
        k, v = (t.to(self.queries.dtype) for t in (self.k, self.v))
        farthest_first = torch.arange(k.shape[2] - 1, -1, -1, device=k.device)
        with torch.autocast(k.device.type, enabled=False):
            table_HM = self.bias.at(farthest_first).to(k.dtype)
            out = ToeplitzAttention.apply(self.q.to(k.dtype), k, v, table_HM, self.scale)
        return out.to(self.v.dtype)

    def _call(self, q, slots: int, mask) -> torch.Tensor:
        k, v = (t[:, :, :slots].to(q.dtype) for t in (self.k, self.v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale, dropout_p=self.dropout)
        return out[..., : self.width].to(self.v.dtype)

    def flex(self) -> torch.Tensor:
        from .attention_flex import flex  # compiles on import of torch's flex attention: only when asked for

        return flex(self)[..., : self.width]


def _beside(parts: list[torch.Tensor], width: int) -> torch.Tensor:
    """The parts' columns side by side, and zeros up to `width`; copied once."""
    missing = width - sum(part.shape[-1] for part in parts)
    if missing:
        parts = [*parts, parts[0].new_zeros(1).expand(*parts[0].shape[:-1], missing)]
    return torch.cat(parts, -1) if len(parts) > 1 else parts[0]


def _power_of_two(scale: float) -> float:
    return 2.0 ** round(math.log2(scale))


def _exact_columns(query: torch.Tensor, key: torch.Tensor, dtype: torch.dtype):
    """Columns in `dtype` whose products sum to query · key: in half precision each factor is split in three parts that
    the format holds exactly, and the products too small for float32 are left out."""
    if dtype not in HALF:
        return [(query.to(dtype), key.to(dtype))]
    q, k = _split(query, dtype), _split(key, dtype)
    return [(q[i], k[j]) for i in range(3) for j in range(3 - i)]


def _split(x: torch.Tensor, dtype: torch.dtype) -> list[torch.Tensor]:
    parts, rest = [], x
    for _ in range(3):
        parts.append(rest.to(dtype))
        rest = rest - parts[-1].to(x.dtype)
    return parts
