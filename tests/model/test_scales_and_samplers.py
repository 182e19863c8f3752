"""Any encoding × any logit scale × any sampler."""

import math

import pytest
import torch
from transformers import DynamicCache

from hf_posgen.model.logit_scale import LOGIT_SCALES
from hf_posgen.model.position_sampler import SAMPLERS

from .helpers import tiny, tokens
from .naive import naive_logits

PLAIN = {"norm": "none", "mlp": "none"}
# One encoding per kind of bias and site.
ENCODINGS = ["none", "learned", "rope", "alibi", "t5", "fire", "forgetting_gate", "cope", "dape", "rove"]
SCALES = [{"name": name} for name in LOGIT_SCALES] + [{"name": "fixed", "factor": 1.7}, {"name": "log_n", "start": 0.6}]
every_pair = pytest.mark.parametrize("encoding", ENCODINGS)
every_scale = pytest.mark.parametrize("scale", SCALES, ids=lambda s: "-".join(map(str, s.values())))


@every_pair
@every_scale
def test_scaled_logits_equal_the_twin(encoding, scale, monkeypatch):
    model = tiny(encoding, torch.float64, logit_scale=scale, **PLAIN)
    row = tokens(8)
    expected = naive_logits(model, row.tolist())
    parameters = list(model.parameters())
    weights = torch.linspace(-1, 1, expected.numel(), dtype=expected.dtype).reshape(expected.shape)
    gradients = torch.autograd.grad((expected * weights).sum(), parameters)
    for kernel in ("eager", "sdpa"):
        model.set_attn_implementation(kernel)
        logits = model(row[None], use_cache=False).logits[0]
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-8)
        for ours, naive in zip(torch.autograd.grad((logits * weights).sum(), parameters), gradients, strict=True):
            torch.testing.assert_close(ours, naive, rtol=1e-7, atol=1e-8)


@every_pair
@every_scale
@torch.no_grad()
def test_scaled_logits_cached_and_padded(encoding, scale):
    model, row = tiny(encoding, logit_scale=scale), tokens(2, 9)
    full = model(row, use_cache=False).logits
    cache = DynamicCache(config=model.config)
    steps = [model(row[:, t : t + 1], cache=cache, use_cache=True).logits for t in range(9)]
    torch.testing.assert_close(torch.cat(steps, 1), full, rtol=0, atol=3e-5)
    padded = torch.cat([torch.zeros(2, 3, dtype=torch.long), row], 1)
    logits = model(padded, attention_mask=(padded != 0).long(), use_cache=False).logits[:, 3:]
    torch.testing.assert_close(logits, full, rtol=0, atol=3e-5)


@torch.no_grad()
def test_a_model_with_none_logits_has_log_n_one_at_its_full_context():
    plain, scaled = (
        tiny("rope", max_position_embeddings=8),
        tiny("rope", max_position_embeddings=8, logit_scale="log_n"),
    )
    for layer in scaled.model.layers:
        layer.self_attn.logit_scale.reset_parameters()
    assert math.isclose(scaled.model.layers[0].self_attn.logit_scale.scale[0].item(), 1 / math.log(8), rel_tol=1e-6)
    assert type(plain.model.layers[0].self_attn.logit_scale).__name__ == "LogitScale"


@pytest.mark.parametrize("entropy, beta", [(0.4, 1.0), (1.0, 1.27), (2.0, 2.099)])
def test_entropy_polynomial_at_known_values(entropy, beta):
    """-0.037 + 0.481 - 2.3 + 4.917 - 1.791 = 1.27 at one nat, 2.099 at two; nothing below half a nat."""
    from scipy.optimize import brentq
    from scipy.stats import entropy as nats

    def two_level(x):  # one logit of x among 15 zeros
        return [math.exp(x)] + [1.0] * 15

    x = brentq(lambda x: nats(two_level(x)) - entropy, 0, 20)
    logits = torch.tensor([x] + [0.0] * 15, dtype=torch.float64).reshape(1, 1, 1, 16)
    module = LOGIT_SCALES["entropy"](None).eval()
    scaled = module.adapt(logits, torch.ones(1, 1, 1, 16, dtype=torch.bool))
    torch.testing.assert_close(scaled, logits * beta, rtol=1e-6, atol=0)
    assert torch.equal(module.train().adapt(logits, torch.ones_like(logits, dtype=torch.bool)), logits)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_keep_order_and_range(name):
    sampler = SAMPLERS[name](None)
    torch.manual_seed(0)
    index = torch.arange(20)[None].expand(50, -1)
    drawn = [sampler(index) for _ in range(20)]
    for positions in drawn:
        assert positions.shape == index.shape and (positions.diff(dim=-1) > 0).all()
        assert positions.min() >= 0 and positions.max() < getattr(sampler, "maximum", 20) + 20
    changes = any(not torch.equal(drawn[0], other) for other in drawn[1:])
    assert changes == (name != "sequential")


def test_randomized_positions_are_uniform():
    """All positions are equally likely: the i-th of n sorted draws from m has the mean (i + 1)(m + 1)/(n + 1) - 1."""
    torch.manual_seed(0)
    sampler = SAMPLERS["randomized"](None, maximum=100)
    mean = sampler(torch.arange(4)[None].expand(20000, -1)).double().mean(0)
    expected = torch.arange(1, 5).double() * 101 / 5 - 1
    assert (mean - expected).abs().max() < 0.5


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    "encoding", ["none", "learned", "rope", "alibi", "t5", "fire", "forgetting_gate", "cope", "sandwich"]
)
def test_any_encoding_takes_any_sampler(encoding, sampler):
    model = tiny(encoding, position_sampler=sampler, max_position_embeddings=4096).train()
    row = tokens(2, 10)
    torch.manual_seed(0)
    first = model(row, labels=row)
    first.loss.backward()
    assert torch.isfinite(first.loss)
    torch.manual_seed(0)
    assert torch.equal(model(row, labels=row).loss, first.loss), "sampling follows torch's generator"
    model.eval()
    plain = tiny(encoding, max_position_embeddings=4096)
    plain.load_state_dict(model.state_dict())
    assert torch.equal(model(row).logits, plain(row).logits), "in evaluation positions are counted from 0"


def test_per_layer_lists_and_what_may_not_stand_in_them():
    model = tiny(["rope", "none"], logit_scale=["none", "log_n"])
    names = [spec["name"] for spec in model.config.position_encoding]
    assert names == ["rope", "none"] and model.model.position_encoding is None
    with pytest.raises(ValueError, match="'learned' acts on the embeddings"):
        tiny(["learned", "none"])
    with pytest.raises(ValueError, match="lists 3 layers; num_hidden_layers is 2"):
        tiny(["rope", "none", "rope"])
    with pytest.raises(ValueError, match="one for the whole model"):
        tiny("rope", position_sampler=["shifted", "shifted"])
