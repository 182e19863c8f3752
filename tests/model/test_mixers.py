"""Linear and recurrent mixers, and hybrids with softmax: equal to their twins and the same by every path."""

import copy

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache

from hf_posgen.model import mixer_linear
from hf_posgen.model.capabilities import capabilities
from hf_posgen.model.configuration_posgen import PosGenConfig
from hf_posgen.model.encoding_registry import ENCODINGS
from hf_posgen.model.mixer_linear import LinearAttention, decayed_sums
from hf_posgen.model.mixer_recurrent import recur
from hf_posgen.model.mixer_registry import MIXERS
from hf_posgen.model.modeling_posgen import PosGenForCausalLM
from hf_posgen.model.posgen_cache import PosGenStateLayer

from .helpers import tiny, tokens
from .naive_mixers import MIXER_TWINS, mixer_logits

L = 14
PLAIN = {"norm": "none", "mlp": "none"}
RELU = {"name": "linear", "feature_map": "relu"}
BARE = {"name": "linear", "feature_map": "identity", "normalized": False}
DENSE = {"name": "recurrence", "kind": "dense", "state_size": 12}
LINEAR_ENCODINGS = [name for name, cls in ENCODINGS.items() if LinearAttention.accepts(cls) is None]

# name: (encoding, mixer); each way in which an encoding acts on a state, every mixer, and hybrids in both orders.
PURE = {
    f"linear-{name}": (name, "linear") for name in ("none", "learned", "rope", "xpos", "rove", "alibi", "cable")
} | {
    "linear-alibi-learned": ({"name": "alibi", "slopes": "learned"}, "linear"),
    "relu-rope": ("rope", RELU),
    "linear-forgetting_gate": ("forgetting_gate", "linear"),
    "identity-alibi": ("alibi", BARE),
    "gated": ("none", "gated_linear"),
    "gated-learned": ("learned", {"name": "gated_linear", "rank": 3, "temperature": 2.0, "output_gate": False}),
    "recurrence": ("none", "recurrence"),
    "recurrence-dense": ("sinusoidal", DENSE),
    "four-kinds": ("none", ["gated_linear", DENSE]),
}
HYBRIDS = {
    "linear-softmax": ("rope", ["linear", "softmax"]),
    "softmax-linear": ("alibi", ["softmax", "linear"]),
    "linear-softmax-gates": ("forgetting_gate", ["linear", "softmax"]),
    "recurrence-softmax": (["none", "rope"], ["recurrence", "softmax"]),
    "gated-softmax": ("learned", ["gated_linear", "softmax"]),
}
COMPILED = ("linear-rope", "linear-alibi", "gated", "four-kinds", "softmax-linear")
# Only against the twins: what differs from the arms above in numbers alone.
VARIANTS = {f"linear-{name}": (name, "linear") for name in LINEAR_ENCODINGS} | {
    "relu-alibi": ("alibi", RELU),
    "identity-rope": ("rope", BARE),
}
ARMS = PURE | HYBRIDS
every_arm = pytest.mark.parametrize("arm", ARMS)
every_variant = pytest.mark.parametrize("arm", ARMS | VARIANTS)
pytestmark = pytest.mark.filterwarnings("ignore:.*exceeded the model's predefined maximum length.*")


def build(arm, dtype=torch.float32, **overrides):
    encoding, mixer = (ARMS | VARIANTS)[arm]
    return tiny(encoding, dtype, mixer=mixer, **overrides)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(mixer_linear, "CHUNK", 4)
    monkeypatch.setattr(mixer_linear, "GATED_CHUNK", 4)


def close(actual, expected, atol=2e-5):
    torch.testing.assert_close(actual, expected, rtol=2e-5, atol=atol)


def test_every_mixer_has_a_twin():
    assert set(MIXER_TWINS) | {"softmax"} == set(MIXERS)


def _gradients(model, logits):
    weights = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).reshape(logits.shape)
    return torch.autograd.grad((logits * weights).sum(), list(model.parameters()), allow_unused=True)


@every_variant
def test_forward_and_gradient_equal_the_naive_twin(arm, monkeypatch):
    model, row = build(arm, torch.float64, **PLAIN), tokens(11)
    expected = mixer_logits(model, row.tolist())
    naive = _gradients(model, expected)
    assert all(gradient is not None for gradient in naive), "a parameter that the formula ignores"
    for chunk in (64, 4):
        monkeypatch.setattr(mixer_linear, "CHUNK", chunk)
        monkeypatch.setattr(mixer_linear, "GATED_CHUNK", min(chunk, 16))
        logits = model(row[None], use_cache=False).logits[0]
        torch.testing.assert_close(logits, expected, rtol=1e-8, atol=1e-8)
        for name, ours, theirs in zip(dict(model.named_parameters()), _gradients(model, logits), naive, strict=True):
            assert ours is not None, f"{name} receives no gradient"
            torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8, msg=lambda m, n=name: f"{n}: {m}")


@every_variant
def test_float32_stays_within_1e5(arm):
    exact, model = build(arm, torch.float64, **PLAIN), build(arm, **PLAIN)
    model.load_state_dict(exact.float().state_dict())
    row = tokens(11)
    expected = mixer_logits(exact.double(), row.tolist()).detach().float()
    scale = max(1.0, float(expected.abs().max()))  # without normalisation, logits are in the thousands
    torch.testing.assert_close(model(row[None]).logits[0] / scale, expected / scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("arm", [arm for arm in ARMS | VARIANTS if "recurrence" not in arm])
def test_positions_with_gaps_equal_the_twin(arm, small_chunks):
    model, row, positions = build(arm, torch.float64, **PLAIN), tokens(6), [2, 3, 7, 8, 20, 31]
    expected = mixer_logits(model, row.tolist(), positions)
    logits = model(row[None], positions=torch.tensor([positions])).logits[0]
    torch.testing.assert_close(logits, expected, rtol=1e-8, atol=1e-8)


def test_a_state_that_halves():
    q = k = torch.ones(1, 1, 3, 1)
    v = torch.tensor([1.0, 10.0, 100.0]).reshape(1, 1, 3, 1)
    half = torch.full((1, 1, 3, 1), 0.5).log()
    for chunk in (1, 2, 3, 64):
        out, state = decayed_sums(q, k, v, None, half, None, chunk)
        close(out.flatten(), torch.tensor([1.0, 10.5, 105.25]))
        close(state.flatten(), torch.tensor([105.25]))


def test_a_dense_recurrence_can_delay_exactly():
    """The shift matrix hands its input on from neuron to neuron: y_t = x_{t-3} at any length."""
    shift = torch.diag(torch.ones(3), 1)  # of row vectors
    x = torch.arange(1.0, 41.0)
    h, _ = recur(torch.nn.functional.pad(x[None, :, None], (0, 3)), shift, None, None, None)
    assert torch.equal(h[0, 3:, 3], x[:-3])


def test_a_diagonal_recurrence_sums_a_geometric_series():
    h, last = recur(torch.ones(1, 50, 1), torch.tensor([0.5]), None, None, None)
    close(h[0, :, 0], 2 - 0.5 ** torch.arange(50.0))
    assert torch.equal(last[0], h[0, -1])


CUTS = {"token by token": list(range(1, L + 1)), "two on three": [3, 5, L], "in halves": [L // 2, L]}
CACHES = {
    "dynamic": lambda model: DynamicCache(config=model.config),
    "bare": lambda model: DynamicCache(),
    "static": lambda model: StaticCache(config=model.config, max_cache_len=L + 5),
}


@every_arm
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("kind", CACHES)
@torch.no_grad()
def test_cached_equals_full(arm, cuts, kind, small_chunks):
    model, row = build(arm), tokens(2, L)
    expected, cache = model(row, use_cache=False).logits, CACHES[kind](model)
    for start, stop in zip([0, *cuts], cuts, strict=False):
        close(model(row[:, start:stop], cache=cache, use_cache=True).logits, expected[:, start:stop])
    assert int(cache.get_seq_length()) == L


@torch.no_grad()
def test_a_length_dependent_encoding_beside_a_linear_layer():
    specs = {"position_encoding": ["none", "rope_dynamic_ntk"], "mixer": ["linear", "softmax"]}
    model, row = tiny("none", max_position_embeddings=6, **specs), tokens(2, L)
    cache = DynamicCache(config=model.config)
    for stop in range(1, L + 1):
        step = model(row[:, stop - 1 : stop], cache=cache, use_cache=True).logits[:, -1]
        close(step, model(row[:, :stop], use_cache=False).logits[:, -1])


@every_arm
@torch.no_grad()
def test_generate_is_the_same_with_every_cache(arm):
    model, row = build(arm), tokens(2, 7)
    mask = torch.ones_like(row)
    settings = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None}
    expected = model.generate(row, attention_mask=mask, use_cache=False, **settings)
    assert torch.equal(model.generate(row, attention_mask=mask, **settings), expected)
    for make in CACHES.values():
        assert torch.equal(model.generate(row, attention_mask=mask, cache=make(model), **settings), expected)
    static = {"cache_implementation": "static", "disable_compile": True}
    assert torch.equal(model.generate(row, attention_mask=mask, **static, **settings), expected)
    beams = model.generate(row, attention_mask=mask, num_beams=3, use_cache=False, **settings)
    assert torch.equal(model.generate(row, attention_mask=mask, num_beams=3, **settings), beams)
    padded = torch.cat([torch.zeros(2, 3, dtype=torch.long), row], 1)
    left = torch.cat([torch.zeros(2, 3, dtype=torch.long), mask], 1)
    assert torch.equal(model.generate(padded, attention_mask=left, **settings)[:, 3:], expected)
    assert torch.equal(model.generate(padded, attention_mask=left, num_beams=3, **settings)[:, 3:], beams)
    assert torch.equal(model.generate(padded, attention_mask=left, **static, **settings)[:, 3:], expected)


@every_arm
@torch.no_grad()
def test_rows_of_unequal_length_generate_as_if_alone(arm):
    model, rows = build(arm), [tokens(n, seed=n) for n in (4, 9, 6)]
    batch = torch.stack([torch.nn.functional.pad(row, (9 - len(row), 0)) for row in rows])
    settings = {"max_new_tokens": 5, "do_sample": False, "eos_token_id": None}
    together = model.generate(batch, attention_mask=(batch != 0).long(), **settings)
    for row, out in zip(rows, together, strict=True):
        alone = model.generate(row[None], attention_mask=torch.ones(1, len(row), dtype=torch.long), **settings)[0]
        assert torch.equal(out[9 - len(row) :], alone)


@every_arm
@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_padding_changes_nothing(arm, side, small_chunks):
    model, width = build(arm), 11
    rows = [tokens(n, seed=n) for n in (5, width)]
    at = [slice(width - len(r), width) if side == "left" else slice(0, len(r)) for r in rows]
    batch, mask = torch.zeros(3, width, dtype=torch.long), torch.zeros(3, width, dtype=torch.long)
    for i, row in enumerate(rows):
        batch[i, at[i]], mask[i, at[i]] = row, 1
    logits = model(batch, attention_mask=mask, use_cache=False).logits
    for i, row in enumerate(rows):
        close(logits[i, at[i]], model(row[None], use_cache=False).logits[0])
    assert torch.isfinite(logits).all(), "a row of nothing but padding must stay finite"


@every_arm
@torch.no_grad()
def test_padding_leaves_the_state_alone(arm, small_chunks):
    """Padding inside a row, also where it ends one call: what follows continues after the last real token."""
    model, row = build(arm), tokens(8)
    expected = model(row[None], use_cache=False).logits[0, 5:]
    padded = torch.cat([row[:5], torch.zeros(3, dtype=torch.long), row[5:]])[None]
    mask = (padded != 0).long()
    close(model(padded, attention_mask=mask, use_cache=False).logits[0, 8:], expected)
    cache = DynamicCache(config=model.config)
    model(padded[:, :7], attention_mask=mask[:, :7], cache=cache, use_cache=True)
    close(model(padded[:, 7:], attention_mask=mask, cache=cache, use_cache=True).logits[0, 1:], expected)


@every_arm
@torch.no_grad()
def test_packed_documents_equal_the_rows_alone(arm, small_chunks):
    model, sizes = build(arm), ((5, 8, 3), (2, 4, 10))
    rows = [[tokens(n, seed=n) for n in row] for row in sizes]
    ids = torch.stack([torch.cat([torch.arange(n) for n in row]) for row in sizes])
    packed = model(torch.stack([torch.cat(row) for row in rows]), position_ids=ids, use_cache=False).logits
    for documents, logits, row in zip(rows, packed, sizes, strict=True):
        for document, part in zip(documents, logits.split(row), strict=True):
            close(part, model(document[None], use_cache=False).logits[0])
    with pytest.raises(ValueError, match="packed"):
        model(tokens(2, 16), position_ids=ids, use_cache=True)


@every_arm
@torch.no_grad()
def test_prepared_4d_mask(arm):
    model, row = build(arm), tokens(2, 8)
    causal = torch.ones(8, 8, dtype=torch.bool).tril()[None, None].expand(2, 1, 8, 8)
    expected = model(row, use_cache=False).logits
    close(model(row, attention_mask=causal, use_cache=False).logits, expected)
    left = causal.clone()
    left[..., :3] = False
    close(
        model(row, attention_mask=left, use_cache=False).logits[:, 3:],
        model(row, attention_mask=left[:, 0, -1].long(), position_ids=torch.arange(8)[None], use_cache=False).logits[
            :, 3:
        ],
    )
    blocks = causal.clone()
    blocks[..., 4:, :4] = False
    with pytest.raises(ValueError, match="4-D mask .* can't act on a state"):
        model(row, attention_mask=blocks, use_cache=False)


@every_arm
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_changes_nothing(arm, reentrant):
    row, losses, gradients = tokens(2, L), [], []
    for checkpointing in (False, True):
        model = build(arm).train()
        if checkpointing:
            model.activation_checkpointing_enable({"use_reentrant": reentrant})
        loss = model(row, labels=row, use_cache=False).loss
        loss.backward()
        losses.append(loss.detach())
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    close(losses[1], losses[0], atol=1e-6)
    for name, gradient in gradients[0].items():
        assert gradient is not None and gradient.abs().sum() > 0, f"{name} receives no gradient"
        close(gradients[1][name], gradient, atol=1e-6)


@every_arm
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@torch.no_grad()
def test_reload_is_bit_equal(arm, dtype, tmp_path):
    model, row = build(arm, dtype), tokens(2, L)
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert again.dtype == dtype and type(again) is PosGenForCausalLM
    assert again.config.mixer == model.config.mixer
    specs = again.config.mixer if isinstance(again.config.mixer, list) else [again.config.mixer]
    assert all(set(spec) > {"name"} or spec["name"] == "softmax" for spec in specs), "every effective value is saved"
    assert torch.equal(again.eval()(row).logits, model(row).logits)


@every_arm
@torch.no_grad()
def test_built_on_meta_compiled_causal(arm):
    model, row = build(arm), tokens(2, L)
    expected = model(row, use_cache=False).logits
    with torch.device("meta"):
        empty = PosGenForCausalLM(copy.deepcopy(model.config))
    empty.to_empty(device="cpu")
    empty.load_state_dict(model.state_dict())
    assert torch.equal(empty.eval()(row, use_cache=False).logits, expected)
    later = row.clone()
    later[:, 9:] = later[:, 9:] % 12 + 1
    double = build(arm, torch.float64)  # in float32 chunks that hold other later tokens round differently, by processor
    exact = double(row, use_cache=False).logits[:, :9]
    close(double(later, use_cache=False).logits[:, :9], exact, atol=1e-12)
    close(model(row[:, :5], use_cache=False).logits, expected[:, :5])
    if arm in COMPILED:
        torch._dynamo.reset()
        compiled = torch.compile(model, fullgraph=True, backend="eager")
        close(compiled(row, use_cache=False).logits, expected)


@pytest.mark.parametrize("arm", PURE)
@torch.no_grad()
def test_decoding_memory_is_constant(arm):
    model, row = build(arm), tokens(2, 40)
    cache, sizes = DynamicCache(config=model.config), []
    for at in range(40):
        model(row[:, at : at + 1], cache=cache, use_cache=True)
        sizes.append(_bytes_held(cache))
    assert len(set(sizes[1:])) == 1 and all(layer.keys is None for layer in cache.layers)
    prompt = DynamicCache(config=model.config)
    model(row, cache=prompt, use_cache=True)
    assert _bytes_held(prompt) == sizes[0] == sizes[-1]


def _bytes_held(cache) -> int:
    """Of the storage behind every tensor: a slice holds on to all it was cut from."""
    held = [t for layer in cache.layers for kind in (layer.states, layer.streams) for t in kind.values()]
    return sum(t.untyped_storage().nbytes() for t in held)


@pytest.mark.parametrize("arm", HYBRIDS)
@torch.no_grad()
def test_a_hybrid_keeps_keys_for_its_softmax_layers_alone(arm):
    model = build(arm)
    cache = DynamicCache(config=model.config)
    model(tokens(2, L), cache=cache, use_cache=True)
    for kind, layer in zip(model.config.layer_types, cache.layers, strict=True):
        assert isinstance(layer, PosGenStateLayer) == (kind == "linear_attention")
        held = {"states": layer.states} if kind == "linear_attention" else {"keys": {"keys": layer.keys}}
        for tensor in next(iter(held.values())).values():
            assert (L in tensor.shape) == (kind == "full_attention")
    with pytest.raises(ValueError, match="can't be cropped"):
        cache.crop(-1)


@every_arm
def test_half_precision_keeps_its_state_in_float32(arm):
    model, row = build(arm, torch.bfloat16).train(), tokens(2, L)
    model(row, labels=row, use_cache=False).loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model.eval()(row, cache=cache, use_cache=True)
    states = [s for layer in cache.layers if isinstance(layer, PosGenStateLayer) for s in layer.states.values()]
    assert states and all(s.dtype in (torch.float32, torch.long) for s in states)


@pytest.mark.parametrize("arm", PURE)
@torch.no_grad()
def test_autocast_leaves_the_state_in_float32(arm):
    model, cache = build(arm), None
    cache = DynamicCache(config=model.config)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.isfinite(model(tokens(2, L), cache=cache, use_cache=True).logits).all()
    assert all(s.dtype in (torch.float32, torch.long) for layer in cache.layers for s in layer.states.values())


def test_closed_gates_stay_finite():
    model = tiny("none", mixer={"name": "gated_linear", "temperature": 0.1})
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.gate_up.bias.fill_(-50.0)
    row = tokens(2, 100)
    loss = model(row, labels=row, use_cache=False).loss
    loss.backward()
    assert torch.isfinite(loss) and all(torch.isfinite(p.grad).all() for p in model.parameters())


@torch.no_grad()
def test_long_rows_agree_with_float64():
    for arm in ("linear-rope", "linear-alibi", "linear-forgetting_gate", "gated", "recurrence", "recurrence-dense"):
        model, row = build(arm, torch.float64), tokens(1, 700)
        if hasattr(model.model.layers[0].self_attn, "A"):  # trained-looking values may have grown beyond 1
            for layer in model.model.layers:
                layer.self_attn.A.mul_(0.5)
        exact = model(row, use_cache=False).logits
        torch.testing.assert_close(model.float()(row, use_cache=False).logits.double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ENCODINGS)
def test_what_has_no_linear_time_form_is_refused_with_a_reason(name):
    for mixer, cls in MIXERS.items():
        reason = cls.accepts(ENCODINGS[name])
        config = {"hidden_size": 16, "num_attention_heads": 2, "position_encoding": name, "mixer": mixer}
        if reason is None:
            PosGenForCausalLM(PosGenConfig(**config))
            continue
        assert "use " in reason, "a refusal says what can"
        with pytest.raises(ValueError, match=f"{name!r} can't act in mixer {mixer!r}"):
            PosGenForCausalLM(PosGenConfig(**config))


def test_what_the_table_of_capabilities_says():
    mixers = {row["encoding"]: row["mixers"] for row in capabilities(["sinusoidal", "rope", "alibi", "t5", "fire"])}
    assert mixers["sinusoidal"] == "softmax, linear, gated_linear, recurrence"
    assert mixers["rope"] == mixers["alibi"] == "softmax, linear"
    assert mixers["t5"] == mixers["fire"] == "softmax"
    for name, cls in ENCODINGS.items():
        biased, decays = "logits" in cls.sites(), cls.bias in mixer_linear.DECAYS
        assert (name in LINEAR_ENCODINGS) == (not cls.depends_on_length and (not biased or decays))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"mixer": {"name": "linear", "feature_map": "exp"}}, "allowed: elu1, relu, identity"),
        ({"mixer": {"name": "linear", "feature_map": "identity"}}, "set normalized to false"),
        ({"mixer": {"name": "gated_linear", "rank": 0}}, "rank is 0; it must be a whole number from 1"),
        ({"mixer": {"name": "recurrence", "kind": "sparse"}}, "allowed: diagonal, dense"),
        (
            {"mixer": {"name": "recurrence", "state_size": 0}},
            "state_size is 0; it must be a whole number from 1 .* or null",
        ),
        ({"mixer": "linear", "logit_scale": "log_n"}, "no logits"),
        ({"mixer": ["softmax"]}, "lists 1 layers"),
        ({"mixer": "liner"}, "did you mean 'linear'"),
        ({"mixer": {"name": "linear", "featuremap": "relu"}}, "did you mean 'feature_map'"),
    ],
)
def test_what_can_not_work_is_refused(overrides, message):
    with pytest.raises(ValueError, match=message):
        PosGenForCausalLM(PosGenConfig(hidden_size=16, num_attention_heads=2, position_encoding="none", **overrides))


def test_initial_recurrence_has_the_radius_asked_for():
    for kind in ("diagonal", "dense"):
        spec = {"name": "recurrence", "kind": kind, "radius": 0.7, "state_size": 24}
        model = PosGenForCausalLM(PosGenConfig(hidden_size=16, position_encoding="none", mixer=spec))
        A = model.model.layers[0].self_attn.A.detach()
        radius = A.abs().max() if kind == "diagonal" else torch.linalg.eigvals(A).abs().max()
        assert 0.5 < radius < 0.701


@torch.no_grad()
def test_logit_scale_and_attentions_belong_to_softmax_layers():
    model = tiny("rope", mixer=["linear", "softmax"], logit_scale=["none", "log_n"])
    model.set_attn_implementation("eager")
    out = model(tokens(2, L), output_attentions=True, output_hidden_states=True)
    assert len(out.attentions) == 1 and len(out.hidden_states) == 3
