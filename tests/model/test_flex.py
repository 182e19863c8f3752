"""Flex attention gives eager's numbers (forward, which is all that a CPU has), without a cache and over one."""

import pytest
import torch
from transformers import DynamicCache, StaticCache

from .helpers import tiny, tokens

ENCODINGS = ["none", "rope", "alibi", "forgetting_gate", "sandwich", "t5", "kerple", "clipped", "grape"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ENCODINGS)
@torch.no_grad()
def test_flex_equals_eager(name):
    model = tiny(name, hidden_size=64, logit_scale={"name": "fixed", "factor": 1.3})
    rows = tokens(2, 16)
    rows[0, :5] = 0
    mask = (rows != 0).long()
    model.set_attn_implementation("eager")
    expected = model(rows, attention_mask=mask, use_cache=False).logits
    model.set_attn_implementation("flex_attention")
    logits = model(rows, attention_mask=mask, use_cache=False).logits
    real = mask.bool()
    torch.testing.assert_close(logits[real], expected[real], rtol=0, atol=2e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "grape"])
@pytest.mark.parametrize("kind", ["dynamic", "static"])
@torch.no_grad()
def test_flex_over_a_cache_equals_eager_without_one(name, kind):
    """A chunk's queries stand after the cached keys, and a static cache's empty slots are hidden."""
    model, row = tiny(name, hidden_size=64), tokens(2, 16)
    model.set_attn_implementation("eager")
    expected = model(row, use_cache=False).logits
    model.set_attn_implementation("flex_attention")
    cache = DynamicCache(config=model.config)
    if kind == "static":
        cache = StaticCache(config=model.config, max_cache_len=24)
    parts = [model(part, cache=cache, use_cache=True).logits for part in row.split([9, 7], dim=1)]
    torch.testing.assert_close(torch.cat(parts, 1), expected, rtol=0, atol=2e-5)
