"""Flex attention gives eager's numbers (forward, which is all that a CPU has), at one fixed shape."""

import pytest
import torch

from .helpers import tiny, tokens

ENCODINGS = ["none", "rope", "alibi", "forgetting_gate", "sandwich", "t5", "kerple", "clipped"]


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
