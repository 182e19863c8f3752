"""Every encoding equals its naive twin, forward and gradient, by every kernel."""

import pytest
import torch

from hf_posgen.model import attention_kernels, attention_toeplitz
from hf_posgen.model.encoding_registry import ENCODINGS

from .helpers import SPECS, spec_id, tiny, tokens
from .naive import TWINS, naive_logits

PLAIN = {"norm": "none", "mlp": "none"}


def test_every_encoding_has_a_twin():
    assert set(TWINS) == set(ENCODINGS)


def _gradients(model, logits):
    weights = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).reshape(logits.shape)
    return torch.autograd.grad((logits * weights).sum(), list(model.parameters()), allow_unused=True)


@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
def test_forward_and_gradient_equal_the_naive_twin(spec, monkeypatch):
    model = tiny(spec, torch.float64, **PLAIN)
    row = tokens(9)
    expected = naive_logits(model, row.tolist())
    expected_gradients = _gradients(model, expected)
    assert all(gradient is not None for gradient in expected_gradients), "a parameter that the paper's formula ignores"
    for kernel, budget in (("eager", 2**22), ("sdpa", 2**22), ("sdpa", 4 * 9 * 2)):  # the last: chunks of two rows
        monkeypatch.setattr(attention_kernels, "CHUNK_ELEMENTS", budget)
        if budget < 100:
            for name in ("FORWARD_ROWS", "TILE_ROWS", "TILE_ELEMENTS"):
                monkeypatch.setattr(attention_toeplitz, name, 2)
        model.set_attn_implementation(kernel)
        logits = model(row[None], use_cache=False).logits[0]
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-8)
        for name, ours, naive in zip(
            dict(model.named_parameters()), _gradients(model, logits), expected_gradients, strict=True
        ):
            assert ours is not None, f"{name} receives no gradient"
            torch.testing.assert_close(ours, naive, rtol=1e-8, atol=1e-8, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
def test_float32_stays_within_1e5(spec, monkeypatch):
    exact, model = tiny(spec, torch.float64, **PLAIN), tiny(spec, **PLAIN)
    model.load_state_dict(exact.float().state_dict())
    row = tokens(9)
    expected = naive_logits(model.double(), row.tolist()).float()
    model = model.float()
    for kernel in ("eager", "sdpa"):
        model.set_attn_implementation(kernel)
        torch.testing.assert_close(model(row[None]).logits[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
def test_positions_with_gaps_equal_the_twin(spec):
    model = tiny(spec, torch.float64, **PLAIN)
    row, positions = tokens(6), [2, 3, 7, 8, 20, 31]
    expected = naive_logits(model, row.tolist(), positions)
    for kernel in ("eager", "sdpa"):
        model.set_attn_implementation(kernel)
        logits = model(row[None], positions=torch.tensor([positions])).logits[0]
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-8)
