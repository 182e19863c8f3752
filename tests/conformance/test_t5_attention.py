"""T5's decoder self-attention with its weights in ours: the bucket bias, layer by layer and through a cache."""

import pytest
import torch
from transformers import DynamicCache, T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from hf_posgen import PosGenConfig, PosGenModel


def both(buckets, max_distance, heads=4, size=12, width=32):
    """T5's attention, and our one-layer model whose attention has its weights. T5 does not scale its logits: √K goes
    into the queries."""
    torch.manual_seed(0)
    theirs = T5Attention(
        T5Config(
            d_model=width,
            d_kv=size,
            num_heads=heads,
            is_decoder=True,
            relative_attention_num_buckets=buckets,
            relative_attention_max_distance=max_distance,
            attn_implementation="eager",
        ),
        has_relative_attention_bias=True,
        layer_idx=0,
    ).eval()
    config = PosGenConfig(
        hidden_size=width,
        head_dim=size,
        num_attention_heads=heads,
        num_hidden_layers=1,
        norm="none",
        mlp="none",
        position_encoding={"name": "t5", "buckets": buckets, "max_distance": max_distance},
    )
    ours = PosGenModel(config).eval()
    attention = ours.layers[0].self_attn
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.15)
        attention.q_proj.weight.copy_(theirs.q.weight * size**0.5)
        for our, their in ((attention.k_proj, theirs.k), (attention.v_proj, theirs.v), (attention.o_proj, theirs.o)):
            our.weight.copy_(their.weight)
        ours.position_encoding.weight.copy_(theirs.relative_attention_bias.weight.T)
    return theirs, ours


@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 20)])
@torch.no_grad()
def test_t5_decoder_self_attention(buckets, max_distance, length=300):
    theirs, ours = both(buckets, max_distance)
    x = torch.randn(2, length, 32)
    causal = torch.full((length, length), float("-inf")).triu(1)[None, None]
    expected = x + theirs(x, mask=causal)[0]  # our block adds the residual
    torch.testing.assert_close(ours(inputs_embeds=x, use_cache=False).last_hidden_state, expected, rtol=0, atol=1e-5)
    cache = DynamicCache(config=ours.config)
    steps = [ours(inputs_embeds=part, cache=cache, use_cache=True).last_hidden_state for part in x.split(50, 1)]
    torch.testing.assert_close(torch.cat(steps, 1), expected, rtol=0, atol=1e-5)
