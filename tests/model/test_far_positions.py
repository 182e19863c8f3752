"""Any position that a config allows, in each dtype: finite, and as float64 says."""

import pytest
import torch
from transformers import DynamicCache, StaticCache

from hf_posgen.model import attention_bias, mixer_linear

from .helpers import SPECS, spec_id, tiny, tokens

L = 12
every_encoding = pytest.mark.parametrize("spec", SPECS, ids=spec_id)
HALF = {torch.float16: 2e-2, torch.bfloat16: 1e-1}
FAR = {
    "at 0": torch.arange(L),
    "at 8,192": torch.arange(L) + 8192,
    "at 131,072": torch.arange(L) + 131_072,
    "from 0 to 131,072": torch.tensor([0, 1, 2, 3, 8192, 8193, 8194, 65_536, 131_070, 131_071, 131_072, 131_073]),
}
SLOW_DECAY, FAST_DECAY = {"name": "xpos", "scale_base": 1e5}, {"name": "xpos", "gamma": 0.01, "scale_base": 2.0}


def logits(model, positions, **options):
    return model(tokens(2, L), positions=positions[None], use_cache=False, **options).logits


@every_encoding
@pytest.mark.parametrize("positions", FAR.values(), ids=FAR)
@pytest.mark.parametrize("dtype", HALF, ids=str)
@torch.no_grad()
def test_half_precision_is_as_float64_says(spec, positions, dtype):
    model = tiny(spec, dtype, out_of_range="wrap")
    exact = logits(tiny(spec, out_of_range="wrap").to(dtype).double(), positions)
    rounded = logits(model, positions).double()
    assert torch.isfinite(rounded).all()
    # What half precision costs where nothing is far, of the same model, is what it may cost here.
    assert (rounded - exact).abs().max() <= HALF[dtype] * exact.abs().max()


@pytest.mark.parametrize("spec", [*SPECS, SLOW_DECAY, FAST_DECAY], ids=spec_id)
@pytest.mark.parametrize("positions", FAR.values(), ids=FAR)
@torch.no_grad()
def test_float32_is_as_float64_says(spec, positions):
    model = tiny(spec, out_of_range="wrap")
    exact = logits(tiny(spec, torch.float64, out_of_range="wrap"), positions)
    # Columns are summed in float32: their last digit is that of slope · distance to the middle query, here 65,536 away.
    spread = int(positions[-1] - positions[0]) > 1000 and "columns" in model.model.bias_kinds
    for implementation in ("eager", "sdpa"):
        model.set_attn_implementation(implementation)
        torch.testing.assert_close(logits(model, positions).double(), exact, rtol=0, atol=5e-3 if spread else 2e-4)


@pytest.mark.parametrize("spec", ["xpos", SLOW_DECAY, FAST_DECAY], ids=str)
@pytest.mark.parametrize("mixer", ["softmax", "linear"])
@pytest.mark.parametrize("positions", FAR.values(), ids=FAR)
def test_a_decay_of_channels_has_float64s_gradients(spec, mixer, positions):
    gradients = []
    for dtype in (torch.float64, torch.float32):
        model = tiny(spec, torch.float64, mixer=mixer).to(dtype)
        logits(model, positions).double().square().mean().backward()
        gradients.append([p.grad.double() for p in model.parameters()])
    for exact, actual in zip(*gradients, strict=True):
        torch.testing.assert_close(actual, exact, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mixer", ["softmax", "linear"])
@torch.no_grad()
def test_spans_and_caches_of_a_fast_decay_equal_one_pass(mixer, monkeypatch):
    """Queries so far apart that one centre would overflow: with a cache, packed, padded, in spans, in chunks."""
    model, row = tiny(FAST_DECAY, mixer=mixer), tokens(2, 80)
    expected = tiny(FAST_DECAY, torch.float64, mixer=mixer)(row, use_cache=False).logits.float()
    monkeypatch.setattr(mixer_linear, "CHUNK", 8)
    for largest in (60.0, 6.0):
        monkeypatch.setitem(attention_bias.LARGEST_EXPONENT, torch.float32, largest)
        torch.testing.assert_close(model(row, use_cache=False).logits, expected, rtol=1e-4, atol=1e-4)
        caches = [DynamicCache(config=model.config)]
        caches += [StaticCache(config=model.config, max_cache_len=90)] if mixer == "softmax" else []
        for cache in caches:
            chunks = [model(part, cache=cache, use_cache=True).logits for part in row.split([50, 1, 29], dim=1)]
            torch.testing.assert_close(torch.cat(chunks, 1), expected, rtol=1e-4, atol=1e-4)
        ids = torch.cat([torch.arange(30), torch.arange(50)])[None]
        packed = model(row, position_ids=ids, use_cache=False).logits
        torch.testing.assert_close(packed[:, :30], expected[:, :30], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(packed[:, 30:], model(row[:, 30:], use_cache=False).logits, rtol=1e-4, atol=1e-4)
        padded, mask = torch.nn.functional.pad(row, (5, 0)), torch.nn.functional.pad(torch.ones_like(row), (5, 0))
        left = model(padded, attention_mask=mask, use_cache=False).logits[:, 5:]
        torch.testing.assert_close(left, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
@torch.no_grad()
def test_spans_by_flex_attention(monkeypatch):
    model, row = tiny(FAST_DECAY, hidden_size=64), tokens(2, 20)
    expected = model(row, use_cache=False).logits
    monkeypatch.setitem(attention_bias.LARGEST_EXPONENT, torch.float32, 10.0)
    model.set_attn_implementation("flex_attention")
    torch.testing.assert_close(model(row, use_cache=False).logits, expected, rtol=0, atol=2e-5)
