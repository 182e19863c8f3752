"""A layer's logits and weights, any rows of them, for every encoding and without an L × L tensor."""

from dataclasses import dataclass

import torch
from torch import nn

from ..model.attention_bias import Bias, Rows
from ..model.attention_mask import Visible
from ..model.mixer_softmax import SoftmaxAttention
from ..model.position_encoding import PositionEncoding, Tokens


@dataclass
class AttentionView:
    """One softmax layer over some sequences. `content_*` are queries and keys before the encoding acted on them,
    `residual_BLD` the decoder layer's input, `input_BLD` the same after its norm."""

    layer: int
    module: SoftmaxAttention
    encoding: PositionEncoding
    residual_BLD: torch.Tensor
    input_BLD: torch.Tensor
    content_q_BHLK: torch.Tensor
    content_k_BHLK: torch.Tensor
    q_BHLK: torch.Tensor
    k_BHLK: torch.Tensor
    v_BHLK: torch.Tensor
    queries: Tokens
    keys: Tokens
    visible: Visible
    bias: Bias | None

    @property
    def length(self) -> int:
        return self.q_BHLK.shape[2]

    def logits(self, start: int, stop: int) -> torch.Tensor:
        """(B, H, stop - start, L): as they enter the softmax, -inf where a key is hidden."""
        scaling, module = self.module.scaling, self.module
        q = self.q_BHLK[:, :, start:stop]
        logits = q @ self.k_BHLK.transpose(-1, -2) * scaling
        visible = self.visible.rows(start, stop)
        if self.bias is not None:
            rows = Rows(self.queries.rows(start, stop), self.keys, q, self.k_BHLK, scaling, visible, logits)
            logits = logits + self.bias.rows(start, stop).dense(rows)
        factor = module.logit_scale.factor(self.queries)
        if factor is not None:
            logits = logits * factor[:, :, start:stop]
        if module.logit_scale.adapts:
            logits = module.logit_scale.adapt(logits, visible)
        return torch.where(visible, logits, float("-inf"))

    def last_logits(self) -> torch.Tensor:
        """(B, H, L): of the last query."""
        return self.logits(self.length - 1, self.length)[:, :, 0]

    def chunks(self, rows: int = 128):
        """(start, stop) over all queries."""
        return ((start, min(start + rows, self.length)) for start in range(0, self.length, rows))


@torch.no_grad()
def attention_views(model, tokens: torch.Tensor, **forward) -> list[AttentionView]:
    """Run the model up to its last softmax layer and keep what enters each. `forward`: positions, attention_mask."""
    layers = [layer for layer in model.model.layers if isinstance(layer.self_attn, SoftmaxAttention)]
    return [_view(**one) for one in inputs_of(model, layers, tokens, **forward)]


def inputs_of(model, layers: list[nn.Module], tokens: torch.Tensor, **forward) -> list[dict]:
    """What enters some decoder layers: residual, and the mixer's module, args, context and encoding."""
    caught: list[dict] = []
    hooks = [hook for layer in layers for hook in _catch(layer, caught, last=layer is layers[-1])]
    if not layers:
        return []
    try:
        model.model(input_ids=tokens, use_cache=False, **forward)
    except _Enough:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    return caught


class _Enough(Exception):
    """All that is wanted has been seen."""


def _catch(layer: nn.Module, caught: list, last: bool) -> list:
    def before_layer(module, args, kwargs):
        caught.append({"residual": args[0] if args else kwargs["hidden_states"]})

    def before_attention(module, args, kwargs):
        context = kwargs["context"]
        caught[-1] |= {"module": module, "args": args, "context": context, "encoding": context.encoding}
        if last:
            raise _Enough

    return [
        layer.register_forward_pre_hook(before_layer, with_kwargs=True),
        layer.self_attn.register_forward_pre_hook(before_attention, with_kwargs=True),
    ]


def _view(residual, module, args, context, encoding) -> AttentionView:
    """The steps of `SoftmaxAttention.forward` up to the logits."""
    hidden, *tables = args
    if encoding is None:
        encoding = module.position_encoding
        tables = encoding.tables(context.queries, context.keys)
    queries, keys = context.with_hidden(hidden, encoding, None)
    q, k, v = module.project(hidden)
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = (t.repeat_interleave(groups, dim=1) for t in (k, v))
    encoded_q, encoded_k = encoding.query(q, queries, *tables), encoding.key(k, queries, *tables)
    return AttentionView(
        layer=module.layer_idx,
        module=module,
        encoding=encoding,
        residual_BLD=residual,
        input_BLD=hidden,
        content_q_BHLK=q,
        content_k_BHLK=k,
        q_BHLK=encoded_q,
        k_BHLK=encoded_k,
        v_BHLK=encoding.value(v, queries, *tables),
        queries=queries,
        keys=keys,
        visible=context.visible,
        bias=encoding.bias(queries.with_vectors(encoded_q), keys.with_vectors(encoded_k), *tables),
    )
