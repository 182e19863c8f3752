"""Softmax attention: the mixer in which every encoding can act."""

from dataclasses import replace

import torch
from torch import nn

from .attention_kernels import attend
from .encoding_registry import build_encoding
from .logit_scale import build_logit_scale


class SoftmaxAttention(nn.Module):
    """Multi-head causal attention with grouped keys and values (Vaswani et al. 2017; Ainslie et al. 2023).

    `encoding_spec` is the layer's own encoding, or None where all layers share the one in the pass's `Context`.
    """

    @staticmethod
    def accepts(encoding: type) -> str | None:
        """Return None, or why an encoding can't act here."""
        return None

    def __init__(self, config, layer_idx: int, encoding_spec: dict | None):
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self.head_dim, self.scaling = config.head_dim, config.head_dim**-0.5  # a config's attributes are slow to read
        width = config.num_attention_heads * config.head_dim
        kv_width = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, width, bias=config.attention_bias)
        self.k_proj = nn.Linear(config.hidden_size, kv_width, bias=config.attention_bias)
        self.v_proj = nn.Linear(config.hidden_size, kv_width, bias=config.attention_bias)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=config.attention_bias)
        self.position_encoding = build_encoding(encoding_spec, config) if encoding_spec is not None else None
        self.logit_scale = build_logit_scale(config.per_layer("logit_scale")[layer_idx], config)

    def forward(self, hidden_states, *tables, context, cache=None):
        """Return (B, L, D) and, from eager, the weights (B, H, L, M). `context` is the pass's `Context`; where it keeps the
        last tokens alone, L is their number in what is returned."""
        encoding = context.encoding
        if encoding is None:
            encoding = self.position_encoding
            tables = encoding(encoding.tables, context.queries, context.keys)
        return encoding(self.attend, hidden_states, tables, context, cache)

    def attend(self, hidden_states, tables, context, cache):
        """Project, encode, attend and project back, while the encoding's weights are in place."""
        encoding = self.position_encoding if context.encoding is None else context.encoding
        layer = None if cache is None else cache.layers[self.layer_idx]
        queries, keys = context.with_hidden(hidden_states, encoding, layer)
        k, v = self.heads(self.k_proj(hidden_states)), self.heads(self.v_proj(hidden_states))
        k, v = encoding.key(k, queries, *tables), encoding.value(v, queries, *tables)
        if layer is not None:
            k, v = cache.update(k, v, self.layer_idx)
        visible = context.visible
        implementation = self.config._attn_implementation
        if context.logits_to_keep and implementation != "flex_attention":
            first = visible.length - context.logits_to_keep
            queries, hidden_states = queries.rows(first, visible.length), hidden_states[:, first:]
            visible = replace(visible, length=context.logits_to_keep, offset=visible.offset + first)
            tables = encoding.tables(queries, keys)
        q = encoding.query(self.heads(self.q_proj(hidden_states)), queries, *tables)
        out, weights = attend(
            q,
            k,
            v,
            queries=queries,
            keys=keys,
            visible=visible,
            bias=encoding.bias(queries.with_vectors(q), keys.with_vectors(k), *tables) if encoding.biases else None,
            scale=self.scaling,
            logit_scale=self.logit_scale,
            dropout=self.config.attention_dropout if self.training else 0.0,
            implementation=implementation,
        )
        out = encoding.output(out, queries, *tables).transpose(1, 2).flatten(2)
        return self.o_proj(out), weights

    def project(self, x_BLD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries (B, H, L, K), keys and values (of as many heads as keys have), before any encoding."""
        return tuple(self.heads(projection(x_BLD)) for projection in (self.q_proj, self.k_proj, self.v_proj))

    def heads(self, x_BLE: torch.Tensor) -> torch.Tensor:
        """Return (B, heads, L, K)."""
        return x_BLE.view(*x_BLE.shape[:2], -1, self.head_dim).transpose(1, 2)
