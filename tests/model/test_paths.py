"""The same numbers by every path: cached and full, padded, packed, beamed, checkpointed, compiled, reloaded."""

import copy

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache

from hf_posgen.model import attention_kernels
from hf_posgen.model.encoding_registry import ENCODINGS
from hf_posgen.model.modeling_posgen import PosGenForCausalLM

from .helpers import SPECS, spec_id, tiny, tokens

L = 14
every_encoding = pytest.mark.parametrize("spec", SPECS, ids=spec_id)
pytestmark = pytest.mark.filterwarnings("ignore:.*exceeded the model's predefined maximum length.*")


def close(actual, expected, atol=2e-5):
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol)


def expected_rows(model, row, spans):
    """The logits that a cached pass over `spans` of one row must give: of the full pass, or, for encodings that depend on
    the length, of a full pass over each prefix."""
    depends = model.model.needs_lengths
    full = model(row, use_cache=False).logits
    return [(model(row[:, :stop], use_cache=False).logits if depends else full)[:, start:stop] for start, stop in spans]


CUTS = {"token by token": list(range(1, L + 1)), "two on three": [3, 5, L], "in halves": [L // 2, L]}


@every_encoding
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("kind", ["dynamic", "bare", "static"])
@torch.no_grad()
def test_cached_equals_full(spec, cuts, kind):
    model, row = tiny(spec), tokens(2, L)
    spans = list(zip([0, *cuts], cuts, strict=False))
    expected = expected_rows(model, row, spans)
    cache = {
        "dynamic": lambda: DynamicCache(config=model.config),
        "bare": DynamicCache,
        "static": lambda: StaticCache(config=model.config, max_cache_len=L + 5),
    }[kind]()
    for (start, stop), rows in zip(spans, expected, strict=True):
        close(model(row[:, start:stop], cache=cache, use_cache=True).logits, rows)
    assert int(cache.get_seq_length()) == L


@every_encoding
@torch.no_grad()
def test_cropped_and_reordered_cache(spec):
    model, row = tiny(spec), tokens(2, L)
    cache = DynamicCache(config=model.config)
    model(row, cache=cache, use_cache=True)
    cache.crop(-4)
    cache.reorder_cache(torch.tensor([1, 0]))
    swapped = row[[1, 0]]
    again = model(swapped[:, L - 4 :], cache=cache, use_cache=True).logits
    close(again, model(swapped, use_cache=False).logits[:, L - 4 :])


@every_encoding
@torch.no_grad()
def test_generate_is_the_same_by_every_kernel_and_cache(spec):
    model, row = tiny(spec), tokens(2, 7)
    mask = torch.ones_like(row)
    settings = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None}
    expected = model.generate(row, attention_mask=mask, use_cache=False, **settings)
    assert torch.equal(model.generate(row, attention_mask=mask, **settings), expected)
    static = model.generate(row, attention_mask=mask, cache_implementation="static", disable_compile=True, **settings)
    assert torch.equal(static, expected)
    beams = model.generate(row, attention_mask=mask, num_beams=3, **settings)
    padded = torch.cat([torch.zeros(2, 3, dtype=torch.long), row], 1)
    left = torch.cat([torch.zeros(2, 3, dtype=torch.long), mask], 1)
    assert torch.equal(model.generate(padded, attention_mask=left, **settings)[:, 3:], expected)
    assert torch.equal(model.generate(padded, attention_mask=left, num_beams=3, **settings)[:, 3:], beams)
    static = model.generate(
        padded, attention_mask=left, cache_implementation="static", disable_compile=True, **settings
    )
    assert torch.equal(static[:, 3:], expected)


@every_encoding
@torch.no_grad()
def test_rows_of_unequal_length_generate_as_if_alone(spec):
    model = tiny(spec)
    rows = [tokens(n, seed=n) for n in (4, 9, 6)]
    widest = max(map(len, rows))
    batch = torch.stack([torch.nn.functional.pad(row, (widest - len(row), 0)) for row in rows])
    settings = {"max_new_tokens": 5, "do_sample": False, "eos_token_id": None}
    together = model.generate(batch, attention_mask=(batch != 0).long(), **settings)
    for row, out in zip(rows, together, strict=True):
        alone = model.generate(row[None], attention_mask=torch.ones(1, len(row), dtype=torch.long), **settings)[0]
        assert torch.equal(out[widest - len(row) :], alone)


@every_encoding
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@torch.no_grad()
def test_padding_changes_nothing(spec, side, kernel):
    model = tiny(spec)
    model.set_attn_implementation(kernel)
    rows = [tokens(n, seed=n) for n in (5, 11)]
    width = 11
    at = [slice(width - len(r), width) if side == "left" else slice(0, len(r)) for r in rows]
    batch, mask = torch.zeros(3, width, dtype=torch.long), torch.zeros(3, width, dtype=torch.long)
    for i, row in enumerate(rows):
        batch[i, at[i]], mask[i, at[i]] = row, 1
    logits = model(batch, attention_mask=mask, use_cache=False).logits
    for i, row in enumerate(rows):
        close(logits[i, at[i]], model(row[None], use_cache=False).logits[0])
    assert torch.isfinite(logits).all(), "a row of nothing but padding must stay finite"


@every_encoding
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@torch.no_grad()
def test_packed_documents_equal_the_rows_alone(spec, kernel):
    model = tiny(spec)
    model.set_attn_implementation(kernel)
    rows = [tokens(n, seed=n) for n in (5, 8, 3)]
    ids = torch.cat([torch.arange(len(row)) for row in rows])[None]
    packed = model(torch.cat(rows)[None], position_ids=ids, use_cache=False).logits[0]
    for row, part in zip(rows, packed.split([5, 8, 3]), strict=True):
        close(part, model(row[None], use_cache=False).logits[0])


# The documents of a row, each as the positions of its tokens; -1 for padding between or around them.
LAYOUTS = {
    "two of one token": [[0], [0]],
    "one token, then three": [[0], [0, 1, 2]],
    "one token in the middle": [[0, 1, 2], [0], [0], [0, 1, 2, 3]],
    "nothing but single tokens": [[0], [0], [0], [0]],
    "the next begins where the last ended": [[0, 1, 2], [2, 3]],
    "not from 0": [[5, 6, 7], [5, 6]],
    "padding between": [[0, 1], [-1, -1], [0, 1, 2]],
    "padding between and a single token": [[0], [-1], [0], [0, 1]],
    "padding around": [[-1, -1], [0], [0, 1], [-1]],
}


@every_encoding
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@torch.no_grad()
def test_any_packed_layout_equals_the_documents_alone(spec, layout):
    model = tiny(spec)
    row = torch.cat([tokens(len(document), seed=i) for i, document in enumerate(layout)])[None]
    ids = torch.tensor(sum(layout, []))[None]
    mask = {} if bool((ids >= 0).all()) else {"attention_mask": (ids >= 0).long()}
    packed = model(row, position_ids=ids.clamp(min=0), use_cache=False, **mask).logits[0]
    spans = zip(layout, row[0].split([len(document) for document in layout]), strict=True)
    for (positions, document), logits in zip(spans, packed.split([len(d) for d in layout]), strict=True):
        if positions[0] >= 0:
            alone = model(document[None], position_ids=torch.tensor(positions)[None], use_cache=False).logits[0]
            close(logits, alone)


@torch.no_grad()
def test_rows_packed_otherwise_than_their_neighbours():
    model, row = tiny("rope"), tokens(2, 4)
    ids = torch.tensor([[0, 0, 1, 2], [0, 1, 2, 3]])
    logits = model(row, position_ids=ids, use_cache=False).logits
    close(logits[0, :1], model(row[:1, :1], use_cache=False).logits[0])
    close(logits[0, 1:], model(row[:1, 1:], use_cache=False).logits[0])
    close(logits[1], model(row[1:], use_cache=False).logits[0])


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            {"attention_mask": torch.tensor([[1, 1, 2, 2]])},
            "attention_mask holds 2; allowed: 1 for a token, 0 for padding",
        ),
        ({"attention_mask": torch.tensor([[0, 1, 2, 2]])}, "attention_mask holds 2"),
        ({"cu_seq_lens_q": torch.tensor([0, 2, 4])}, "cu_seq_lens_q says where documents begin.*position_ids"),
        ({"seq_idx": torch.tensor([[0, 0, 1, 1]])}, "seq_idx says where documents begin.*position_ids"),
    ],
    ids=["numbered mask", "numbered mask with padding", "cu_seq_lens", "seq_idx"],
)
def test_documents_told_otherwise_are_refused(told, sentence):
    with pytest.raises(ValueError, match=sentence):
        tiny("rope")(tokens(1, 4), use_cache=False, **told)


@every_encoding
@torch.no_grad()
def test_positions_with_gaps_are_no_new_document(spec):
    """Stepping positions must not turn into a block mask: the first token still reaches the last."""
    model, row = tiny(spec), tokens(1, 8)
    other = row.clone()
    other[0, 0] = row[0, 0] % 12 + 1
    positions = torch.tensor([[0, 2, 3, 7, 9, 10, 15, 20]])
    a, b = (model(r, positions=positions, use_cache=False).logits[0, -1] for r in (row, other))
    assert (a - b).abs().max() > 1e-6


@every_encoding
@torch.no_grad()
def test_prepared_4d_mask(spec):
    model, row = tiny(spec), tokens(2, 8)
    causal = torch.ones(8, 8, dtype=torch.bool).tril()[None, None].expand(2, 1, 8, 8)
    expected = model(row, use_cache=False).logits
    close(model(row, attention_mask=causal, use_cache=False).logits, expected)
    additive = torch.zeros(2, 1, 8, 8).masked_fill(~causal, torch.finfo(torch.float32).min)
    close(model(row, attention_mask=additive, use_cache=False).logits, expected)


@every_encoding
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_changes_nothing(spec, reentrant):
    row = tokens(2, L)
    losses, gradients = [], []
    for checkpointing in (False, True):
        model = tiny(spec).train()
        if checkpointing:
            model.activation_checkpointing_enable({"use_reentrant": reentrant})
        loss = model(row, labels=row, use_cache=False).loss
        loss.backward()
        losses.append(loss.detach())
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    close(losses[1], losses[0], atol=1e-6)
    for name, gradient in gradients[0].items():
        assert gradient is not None, f"{name} receives no gradient"
        close(gradients[1][name], gradient, atol=1e-6)


@every_encoding
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@torch.no_grad()
def test_reload_is_bit_equal(spec, dtype, tmp_path):
    model, row = tiny(spec, dtype), tokens(2, L)
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert again.dtype == dtype and type(again) is PosGenForCausalLM
    assert again.config.position_encoding == model.config.position_encoding
    assert torch.equal(again.eval()(row).logits, model(row).logits)


@torch.no_grad()
def test_two_variants_in_one_process_do_not_mix():
    row = tokens(1, L)
    for spec, other in (("rope", {"name": "rope", "base": 100.0}), ("alibi", {"name": "alibi", "slopes": "geometric"})):
        first = tiny(spec, num_attention_heads=6, hidden_size=48)
        before = first(row).logits
        second = tiny(other, num_attention_heads=6, hidden_size=48)
        second.load_state_dict(first.state_dict())
        assert not torch.allclose(second(row).logits, before)
        assert torch.equal(first(row).logits, before)


@every_encoding
@torch.no_grad()
def test_built_on_meta_and_materialised(spec):
    model, row = tiny(spec), tokens(2, L)
    with torch.device("meta"):
        empty = PosGenForCausalLM(copy.deepcopy(model.config))
    empty.to_empty(device="cpu")
    empty.load_state_dict(model.state_dict())
    assert torch.equal(empty.eval()(row).logits, model(row).logits)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
def test_initial_values_in_half_precision_train(name, dtype):
    model = tiny(name, dtype).train()
    row = tokens(2, L)
    model(row, labels=row, use_cache=False).loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@every_encoding
@torch.no_grad()
def test_causal_unless_the_table_says_otherwise(spec):
    model, row = tiny(spec), tokens(1, L)
    later = row.clone()
    later[0, 9:] = later[0, 9:] % 12 + 1
    before, after = (model(r, use_cache=False).logits[0, :9] for r in (row, later))
    close(before, after, atol=1e-6)
    shorter = model(row[:, :5], use_cache=False).logits[0]
    if model.model.needs_lengths:
        assert (shorter - before[:5]).abs().max() > 1e-3, "an encoding that depends on the length can't be causal"
    else:
        close(shorter, before[:5])


@torch.no_grad()
def test_dynamic_scaling_is_a_function_of_the_row_alone():
    model = tiny("rope_dynamic_ntk")
    short, long = tokens(5, seed=1), tokens(12, seed=2)
    alone = model(short[None]).logits[0]
    model(long[None])  # an earlier, longer call
    close(model(short[None]).logits[0], alone, atol=0)
    batch = torch.stack([torch.nn.functional.pad(short, (7, 0)), long])
    close(model(batch, attention_mask=(batch != 0).long()).logits[0, 7:], alone)


@every_encoding
@torch.no_grad()
def test_compiles_in_one_graph(spec):
    if spec != {"name": spec["name"]}:
        return
    model, row = tiny(spec), tokens(2, L)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    close(compiled(row, use_cache=False).logits, model(row, use_cache=False).logits)


@every_encoding
@torch.no_grad()
def test_logits_to_keep_and_eager_attentions(spec):
    model, row = tiny(spec), tokens(2, L)
    full = model(row).logits
    close(model(row, logits_to_keep=3).logits, full[:, -3:])
    close(model(row, logits_to_keep=torch.tensor([2, 5])).logits, full[:, [2, 5]])
    model.set_attn_implementation("eager")
    out = model(row, output_attentions=True, output_hidden_states=True)
    assert len(out.attentions) == 2 and out.attentions[0].shape == (2, 4, L, L)
    assert len(out.hidden_states) == 3
    close(out.attentions[1].sum(-1), torch.ones(2, 4, L))


@every_encoding
def test_the_last_layer_computes_what_is_asked(spec):
    """Logits, loss and gradients of the last places, when no others are wanted; padded rows too."""
    model, row = tiny(spec, out_of_range="clamp"), tokens(2, L)
    mask, labels = torch.ones_like(row), row.clone()
    mask[0, :3], labels[:, : L - 1] = 0, -100
    gradients = []
    for keep in (0, 2, torch.tensor([L - 2])):
        out = model(row, attention_mask=mask, labels=labels, logits_to_keep=keep, num_items_in_batch=2, use_cache=False)
        gradients.append(
            (out.loss, out.logits, torch.autograd.grad(out.loss, list(model.parameters()), allow_unused=True))
        )
    (loss, logits, whole), *others = gradients
    for other_loss, other_logits, other in others:
        close(other_loss, loss)
        close(other_logits, logits[:, L - 2 :][:, : other_logits.shape[1]])
        for mine, theirs in zip(other, whole, strict=True):
            assert (mine is None) == (theirs is None)
            if mine is not None:
                close(mine, theirs)


@torch.no_grad()
def test_columns_take_the_fused_kernel():
    """The extra columns must leave scaled_dot_product_attention in its flash kernel, or memory grows with L²."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for spec in ("none", "rope", "alibi", "forgetting_gate"):
        model, row = tiny(spec), tokens(1, 64)
        assert attention_kernels.CHUNK_ELEMENTS > 0
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            close(model(row, use_cache=False).logits, model(row, use_cache=False).logits)


@pytest.mark.parametrize("name", ["alibi", "forgetting_gate", "grape"])
@pytest.mark.parametrize("scale", ["none", "log_n"])
@torch.no_grad()
def test_columns_a_few_heads_at_a_time(name, scale, monkeypatch):
    model, row = tiny(name, logit_scale=scale), tokens(2, L)
    expected = model(row, use_cache=False).logits
    monkeypatch.setattr(attention_kernels, "COPIED_ELEMENTS", 3 * 2 * L * 8)  # three of the four heads, then the last
    close(model(row, use_cache=False).logits, expected, atol=1e-6)


NOTHING_SCORED = {
    "all ignored": (torch.full((2, 6), -100), {}),
    "all ignored, counted": (torch.full((2, 6), -100), {"num_items_in_batch": 0}),
    "all ignored, counted in a tensor": (torch.full((2, 6), -100), {"num_items_in_batch": torch.tensor(0)}),
    "the first token alone": (torch.tensor([[3, -100, -100, -100, -100, -100]] * 2), {}),
    "a row of one token": (torch.tensor([[3], [4]]), {}),
    "the last logits alone": (torch.tensor([[3, 4, 5, 6, 7, 8]] * 2), {"logits_to_keep": 1}),
}


@pytest.mark.parametrize("arm", ["rope", "t5", "cope"])
@pytest.mark.parametrize(("labels", "options"), NOTHING_SCORED.values(), ids=NOTHING_SCORED)
def test_where_nothing_is_scored_the_loss_is_zero(arm, labels, options):
    model = tiny(arm).train()
    loss = model(tokens(*labels.shape), labels=labels, use_cache=False, **options).loss
    loss.backward()
    assert loss.item() == 0
    assert all(p.grad is not None and not p.grad.any() for name, p in model.named_parameters() if "lm_head" in name)
    assert not any(p.grad.any() for p in model.parameters() if p.grad is not None)


def test_the_loss_is_the_mean_over_the_scored_labels():
    model, row = tiny("rope"), tokens(2, 8)
    labels = torch.where(torch.arange(8) < 3, -100, row)
    out = model(row, labels=labels, use_cache=False)
    mean = torch.nn.functional.cross_entropy(out.logits[:, 2:-1].flatten(0, 1), row[:, 3:].flatten())
    torch.testing.assert_close(out.loss, mean)
    twice = model(row, labels=labels, use_cache=False, num_items_in_batch=20).loss
    torch.testing.assert_close(twice * 2, mean)


@every_encoding
def test_assisted_decoding_is_greedy_decoding_or_refused(spec):
    """An assistant's tokens are checked many at a time; so are those of a prompt look-up."""
    model, row = tiny(spec, out_of_range="clamp"), tokens(1, 5).repeat(1, 3)
    settings = {"attention_mask": torch.ones_like(row), "max_new_tokens": 8, "do_sample": False, "eos_token_id": None}
    greedy = model.generate(row, **settings)
    for assistance in ({"prompt_lookup_num_tokens": 3}, {"assistant_model": tiny("none", seed=3)}):
        if model.model.needs_lengths:
            with pytest.raises(ValueError, match=f"{spec['name']!r} depends on the length.*generate without one"):
                model.generate(row, **settings, **assistance)
        else:
            assert torch.equal(model.generate(row, **settings, **assistance), greedy)


@pytest.mark.parametrize("mixer", ["linear", "gated_linear", "recurrence", ["softmax", "linear"]], ids=str)
def test_assisted_decoding_is_refused_by_mixers_without_a_past(mixer):
    model, row = tiny("none", mixer=mixer), tokens(1, 9)
    with pytest.raises(ValueError, match="keeps no past.*generate without one"):
        model.generate(row, attention_mask=torch.ones_like(row), max_new_tokens=4, prompt_lookup_num_tokens=2)
