"""One call of attention: its tensors, and what the kernels cut out of them or write into them."""

import math
from dataclasses import dataclass, replace

import torch

from .attention_bias import Bias, Columns, Rows, concatenate
from .attention_mask import Visible

HALF = (torch.bfloat16, torch.float16)


@dataclass
class AttentionCall:
    """softmax((q · k · scale + bias) · factor) v over the visible keys, or with logits adapted by `logit_scale`.

    query_BHLK, key_BHMK, value_BHMV: as encoded, all with H heads. V, `width` at first, grows when columns are added.
    queries, keys: their `Tokens`. factor_BHL1: of the logits, bias included; None: 1. dropout: of the weights.
    """

    query_BHLK: torch.Tensor
    key_BHMK: torch.Tensor
    value_BHMV: torch.Tensor
    queries: object
    keys: object
    visible: Visible
    bias: Bias | None
    scale: float
    logit_scale: object
    factor_BHL1: torch.Tensor | None
    dropout: float
    width: int

    @property
    def needs_logits(self) -> bool:
        """Whether a row's logits must be written out before it is known what becomes of them."""
        return self.logit_scale.adapts or (self.bias is not None and self.bias.needs_logits)

    def keys_before(self, stop: int) -> int:
        """Return how many keys the queries before `stop` can see at most."""
        return self.visible.offset + stop if self.visible.aligned else self.key_BHMK.shape[2]

    def rows(self, start: int, stop: int, slots: int, logits_BHcM: torch.Tensor | None = None) -> Rows:
        """Return some queries against the first `slots` keys, as a bias may see them."""
        return Rows(
            queries=self.queries.rows(start, stop),
            keys=self.keys.rows(0, slots),
            query_BHcK=self.query_BHLK[:, :, start:stop],
            key_BHMK=self.key_BHMK[:, :, :slots],
            scale=self.scale,
            visible=self.visible.rows(start, stop, slots),
            logits_BHcM=logits_BHcM,
        )

    def dense_bias(self, rows: Rows, start: int, stop: int) -> torch.Tensor:
        """Return (B, H, c, M): the bias of those rows, written out."""
        return self.bias.rows(start, stop).dense(rows)[..., : rows.key_BHMK.shape[2]]

    def of_heads(self, first: int, last: int) -> "AttentionCall":
        """Return this call for some heads alone; what all heads share has one."""

        def some(tensor: torch.Tensor | None) -> torch.Tensor | None:
            return tensor if tensor is None or tensor.shape[1] == 1 else tensor[:, first:last]

        return replace(
            self,
            query_BHLK=some(self.query_BHLK),
            key_BHMK=some(self.key_BHMK),
            value_BHMV=some(self.value_BHMV),
            bias=None if self.bias is None else Columns(some(self.bias.query_BHLC), some(self.bias.key_BHMC)),
            factor_BHL1=some(self.factor_BHL1),
        )

    def decayed(self, start: int, stop: int) -> "AttentionCall":
        """Return this call for some queries, with the factors of a `ChannelDecay` in q and k; in float32 where float16's
        range is too small for them."""
        queries = self.queries.rows(start, stop)
        q, k, v = self.query_BHLK[:, :, start:stop], self.key_BHMK, self.value_BHMV
        dtype = queries.dtype if q.dtype == torch.float16 else q.dtype
        of_q, of_k = self.bias.factors(queries, self.keys)
        return replace(
            self,
            query_BHLK=(q * of_q).to(dtype),
            key_BHMK=(k * of_k).to(dtype),
            value_BHMV=v.to(dtype),
            queries=queries,
            visible=self.visible.of_rows(start, stop),
            bias=None,
            factor_BHL1=None if self.factor_BHL1 is None else self.factor_BHL1[:, :, start:stop],
        )

    def with_columns(self) -> "AttentionCall":
        """Return this call with the bias moved into extra columns of q and k, and q, k, v padded to one width, a multiple
        of 8: anything else loses the fused kernel. The factor multiplies q and the query's columns."""
        if self.bias is None and self.factor_BHL1 is None:
            return self
        q, factor, dtype = self.query_BHLK, self.factor_BHL1, self.query_BHLK.dtype
        # Half precision: the rest of the scale goes into q, so that dividing the columns by it loses no digit.
        scale = _nearest_power_of_two(self.scale) if dtype in HALF else 1.0
        if self.scale != scale:
            q = q * (self.scale / scale)
        if factor is not None:
            q = (q.to(factor.dtype) * factor).to(dtype)
        of_q, of_k = [q], [self.key_BHMK]
        if self.bias is not None:
            columns = self.bias.query_BHLC if factor is None else self.bias.query_BHLC * factor
            for extra_q, extra_k in _exact_columns(columns / scale, self.bias.key_BHMC, dtype):
                of_q.append(extra_q.expand(*q.shape[:3], -1))
                of_k.append(extra_k.expand(*self.key_BHMK.shape[:3], -1))
        width = sum(columns.shape[-1] for columns in of_q)
        width += -width % 8
        q, k, v = (concatenate(columns, width) for columns in (of_q, of_k, [self.value_BHMV]))
        return replace(self, query_BHLK=q, key_BHMK=k, value_BHMV=v, scale=scale, factor_BHL1=None, bias=None)


def _nearest_power_of_two(scale: float) -> float:
    return 2.0 ** round(math.log2(scale))


def _exact_columns(query: torch.Tensor, key: torch.Tensor, dtype: torch.dtype):
    """Return pairs of columns in `dtype` whose products sum to query · key: in half precision each factor is split in three
    that the format holds exactly, and the products too small for float32 are left out."""
    if dtype not in HALF:
        return [(query.to(dtype), key.to(dtype))]
    q, k = _split(query, dtype), _split(key, dtype)
    return [(q[i], k[j]) for i in range(3) for j in range(3 - i)]


def _split(x: torch.Tensor, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return three tensors in `dtype` that sum to x, the largest first."""
    digits, rest = [], x
    for _ in range(3):
        digits.append(rest.to(dtype))
        rest = rest - digits[-1].to(x.dtype)
    return digits
