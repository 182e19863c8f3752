"""The same numbers as transformers' own models, both ways where there are two, and a clear sentence where there is none."""

from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MptConfig,
    MptForCausalLM,
    T5Config,
)

from hf_posgen import PosGenConfig, PosGenForCausalLM
from hf_posgen.convert import convert, from_transformers, to_llama
from tests.helpers.hub_helpers import python
from tests.helpers.standin_hub import hub_fixture  # noqa: F401
from tests.helpers.tiny_models import byte_level_bpe

V, L = 29, 24
SIZES = {"vocab_size": V, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
SHORT = {"n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": V}
ROPES = {
    "default": {"rope_type": "default", "rope_theta": 500.0},
    "linear": {"rope_type": "linear", "factor": 3.0},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    "yarn with mscale": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 16,
        "beta_fast": 8.0,
        "beta_slow": 2.0,
        "mscale": 0.7,
        "mscale_all_dim": 0.4,
    },
    "longrope, short": {
        "rope_type": "longrope",
        "factor": 4.0,
        "original_max_position_embeddings": 32,
        "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
        "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    },
    "longrope, long": {
        "rope_type": "longrope",
        "factor": 4.0,
        "original_max_position_embeddings": 16,
        "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
        "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "attention_factor": 1.3,
    },
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.5},
}


def shaken(cls, config, seed=0):
    """A model none of whose parameters has its initial value."""
    torch.manual_seed(seed)
    model = cls(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return model


def llama(rope="default", **overrides):
    settings = SIZES | {"intermediate_size": 80, "num_key_value_heads": 2, "max_position_embeddings": 16}
    rope = {"rope_theta": 10000.0} | ROPES[rope]
    return shaken(LlamaForCausalLM, LlamaConfig(**(settings | {"rope_parameters": rope} | overrides)))


def gpt2(**overrides):
    return shaken(GPT2LMHeadModel, GPT2Config(**(SHORT | {"n_positions": 32} | overrides)))


def gpt_neox(**overrides):
    settings = SIZES | {"intermediate_size": 80, "use_parallel_residual": False, "max_position_embeddings": 32}
    settings["rope_parameters"] = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    return shaken(GPTNeoXForCausalLM, GPTNeoXConfig(**(settings | overrides)))


def mpt(**overrides):
    return shaken(
        MptForCausalLM, MptConfig(**({"d_model": 48, "n_layers": 2, "n_heads": 4, "vocab_size": V} | overrides))
    )


def bloom(**overrides):
    return shaken(BloomForCausalLM, BloomConfig(**(SIZES | overrides)))


MODELS = {
    "gpt2": gpt2,
    "gpt2 with its own width": lambda: gpt2(n_inner=70, tie_word_embeddings=False),
    **{f"llama {name}": (lambda name=name: llama(name)) for name in ROPES},
    "llama tied, with biases": lambda: llama(tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
    "llama with wide heads": lambda: llama(head_dim=20),
    "gpt_neox": gpt_neox,
    "gpt_neox without attention bias": lambda: gpt_neox(attention_bias=False),
    "mpt": mpt,
    "mpt with six heads": lambda: mpt(n_heads=6),
    "bloom": bloom,
    "bloom with six heads": lambda: bloom(num_attention_heads=6),
}


def ids(rows=2, length=L):
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def assert_same_logits(one, other, atol=1e-5):
    expected, actual = (model(ids(), use_cache=False).logits for model in (one, other))
    assert expected.std() > 0.1, "logits that say nothing"
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_same_logits(build):
    source = build()
    assert_same_logits(source, from_transformers(source))


@pytest.mark.parametrize("build", [gpt2, llama, gpt_neox, mpt, bloom])
@torch.no_grad()
def test_left_padded_rows_decode_the_same(build):
    source = build()
    ours = from_transformers(source)
    row = ids(1, 9)
    batch = torch.cat([torch.nn.functional.pad(row, (3, 0)), ids(1, 12)])
    mask = torch.ones_like(batch)
    mask[0, :3] = 0
    settings = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    expected, actual = (m.generate(batch, attention_mask=mask, **settings) for m in (source, ours))
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("build", [gpt2, llama, gpt_neox, mpt])
def test_same_gradients(build):
    """Of the loss, at the token embeddings: the converted model trains on as the source would."""
    source = build()
    ours = from_transformers(source)
    grads = []
    for model in (source, ours):
        model(ids(), labels=ids(), use_cache=False).loss.backward()
        grads.append(model.get_input_embeddings().weight.grad)
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rope", ROPES)
def test_llama_to_posgen_to_llama(rope):
    source = llama(rope)
    again = to_llama(from_transformers(source))
    for name, tensor in source.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    assert len(again.state_dict()) == len(source.state_dict())
    assert_same_logits(source, again)


OURS = SIZES | {"norm": "rmsnorm", "mlp": "gated", "hidden_act": "silu", "max_position_embeddings": 16}
SERVED = [
    {"name": "rope", "base": 500.0},
    {"name": "rope", "p": 0.5},
    {"name": "rope_linear", "factor": 2.0},
    {"name": "rope_ntk", "factor": 4.0},
    {"name": "rope_dynamic_ntk", "factor": 2.0},
    {"name": "rope_yarn", "factor": 4.0, "beta_fast": 8.0},
    {"name": "rope_longrope", "factor": 2.0, "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
    {"name": "rope_longrope", "factor": 2.0},
    {"name": "rope_llama3", "factor": 8.0},
]


@pytest.mark.parametrize("spec", SERVED, ids=lambda spec: "-".join(map(str, spec.values())))
def test_ours_served_as_llama(spec):
    ours = shaken(PosGenForCausalLM, PosGenConfig(**OURS, position_encoding=spec))
    assert_same_logits(ours, to_llama(ours))


NO_LLAMA = {
    "norm is 'layernorm'": {"norm": "layernorm"},
    "mlp is 'plain'": {"mlp": "plain"},
    "position_encoding is 'alibi'": {"position_encoding": "alibi"},
    "a share of 0.5": {"position_encoding": {"name": "rope", "share": 0.5}},
    "grid is 'linear'": {"position_encoding": {"name": "rope", "grid": "linear"}},
    "logit_scale is fixed": {"logit_scale": {"name": "fixed", "factor": 2.0}},
    "mixer is linear": {"mixer": ["softmax", "linear"], "position_encoding": ["rope", "none"]},
    "differs from layer to layer": {"position_encoding": ["rope", "none"]},
}


@pytest.mark.parametrize(("sentence", "change"), NO_LLAMA.items(), ids=NO_LLAMA)
def test_refused_as_llama(sentence, change):
    ours = PosGenForCausalLM(PosGenConfig(**(OURS | change)))
    with pytest.raises(ValueError, match=f"no Llama: .*{sentence}"):
        to_llama(ours)


def test_every_reason_is_named():
    ours = PosGenForCausalLM(PosGenConfig(**(OURS | {"norm": "none", "mlp": "plain", "position_encoding": "t5"})))
    with pytest.raises(ValueError, match="norm is 'none'.*; mlp is 'plain'.*; position_encoding is 't5'"):
        to_llama(ours)


NO_POSGEN = {
    "use_parallel_residual": lambda: gpt_neox(use_parallel_residual=True),
    "apply_residual_connection_post_layernorm": lambda: bloom(apply_residual_connection_post_layernorm=True),
    "clip_qkv": lambda: mpt(attn_config={"clip_qkv": 6.0}),
    "softmax_scale, qk_ln": lambda: mpt(attn_config={"softmax_scale": 1.0, "qk_ln": True}),
    "scale_attn_by_inverse_layer_idx": lambda: gpt2(scale_attn_by_inverse_layer_idx=True),
    "unscaled_logits": lambda: gpt2(scale_attn_weights=False),
    "truncate": lambda: llama(rope_parameters={"rope_theta": 1e4, "truncate": False} | ROPES["yarn"]),
}


@pytest.mark.parametrize(("sentence", "build"), NO_POSGEN.items(), ids=NO_POSGEN)
def test_refused_as_posgen(sentence, build):
    with pytest.raises(ValueError, match=sentence):
        from_transformers(build())


def test_folders_both_ways(tmp_path):
    """Llama's folder to ours to Llama's: the weights bit-equal, the tokenizer along, the way back found by itself."""
    from hf_posgen.tasks import build_task

    source = llama(vocab_size=64)
    source.save_pretrained(tmp_path / "llama")
    build_task("fixed_offset").build_tokenizer().save_pretrained(tmp_path / "llama")
    ours = convert(tmp_path / "llama", tmp_path / "ours")
    again = convert(ours, tmp_path / "again")
    opened = AutoModelForCausalLM.from_pretrained(again)
    assert type(opened) is LlamaForCausalLM
    assert all(torch.equal(opened.state_dict()[name], tensor) for name, tensor in source.state_dict().items())
    assert isinstance(AutoModelForCausalLM.from_pretrained(ours), PosGenForCausalLM)
    assert AutoTokenizer.from_pretrained(again)("3 7")["input_ids"] == [3, 7]
    with pytest.raises(FileExistsError, match="not an empty folder"):
        convert(tmp_path / "llama", ours)


def test_half_precision_stays(tmp_path):
    llama().to(torch.bfloat16).save_pretrained(tmp_path / "llama")
    ours = AutoModelForCausalLM.from_pretrained(convert(tmp_path / "llama", tmp_path / "ours"))
    assert ours.dtype == torch.bfloat16


def test_wrong_ways(tmp_path):
    gpt2().save_pretrained(tmp_path / "gpt2")
    for to, sentence in {"llama": "convert it first", "gguf": "allowed: posgen, llama"}.items():
        with pytest.raises(ValueError, match=sentence):
            convert(tmp_path / "gpt2", tmp_path / "out", to=to)
    ours = convert(tmp_path / "gpt2", tmp_path / "ours")
    with pytest.raises(ValueError, match="posgen model already"):
        convert(ours, tmp_path / "out", to="posgen")
    with pytest.raises(ValueError, match="norm is 'layernorm'"):
        convert(ours, tmp_path / "out")
    T5Config().save_pretrained(tmp_path / "t5")
    with pytest.raises(ValueError, match="no conversion from 't5' to posgen; allowed: bloom, gpt2"):
        convert(tmp_path / "t5", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def with_chat(folder):
    """A tokenizer with two chat templates, as a model of today has them."""
    tokenizer = byte_level_bpe()
    tokenizer.chat_template = {"default": "{{ messages[0].content }}!", "tool_use": "{{ messages[0].content }}?"}
    tokenizer.save_pretrained(folder)
    return tokenizer


def test_all_of_a_tokenizer_travels(tmp_path):
    """There and back: chat templates, special tokens and whatever else transformers writes for one."""
    source = tmp_path / "llama"
    llama(vocab_size=320).save_pretrained(source)
    tokenizer = with_chat(source)
    (source / "tokenizer-notes").mkdir()
    ours = convert(source, tmp_path / "ours")
    for folder in (ours, convert(ours, tmp_path / "again")):
        travelled = AutoTokenizer.from_pretrained(folder)
        assert travelled.chat_template == tokenizer.chat_template
        for name in ("default", "tool_use"):
            chat, options = [{"role": "user", "content": "in he"}], {"chat_template": name, "tokenize": False}
            assert travelled.apply_chat_template(chat, **options) == tokenizer.apply_chat_template(chat, **options)
        assert travelled("in he on")["input_ids"] == tokenizer("in he on")["input_ids"]
        assert travelled.bos_token == tokenizer.bos_token


def test_a_model_without_a_tokenizer_gets_none(tmp_path):
    for build in (gpt2, llama, gpt_neox):
        build().save_pretrained(tmp_path / build.__name__)
        ours = convert(tmp_path / build.__name__, tmp_path / f"{build.__name__}-ours")
        assert not list(ours.glob("*token*"))


def test_weights_in_an_old_format(tmp_path):
    source = llama()
    source.save_pretrained(tmp_path / "llama")
    (tmp_path / "llama" / "model.safetensors").unlink()
    torch.save(source.state_dict(), tmp_path / "llama" / "pytorch_model.bin")
    assert_same_logits(source, AutoModelForCausalLM.from_pretrained(convert(tmp_path / "llama", tmp_path / "ours")))


def test_a_conversion_that_breaks_leaves_nothing(tmp_path, monkeypatch):
    llama(vocab_size=320).save_pretrained(tmp_path / "llama")
    with_chat(tmp_path / "llama")

    def full(self, folder, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr("transformers.PreTrainedTokenizerBase.save_pretrained", full)
    with pytest.raises(OSError, match="no space left"):
        convert(tmp_path / "llama", tmp_path / "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["llama"]


def test_weights_in_an_old_format_on_the_hub(hub, tmp_path):
    source = llama(vocab_size=320)
    source.save_pretrained(tmp_path / "llama")
    with_chat(tmp_path / "llama")
    (tmp_path / "llama" / "model.safetensors").unlink()
    torch.save(source.state_dict(), tmp_path / "llama" / "pytorch_model.bin")
    repo = hub.create("lab/llama")
    for file in filter(Path.is_file, (tmp_path / "llama").rglob("*")):
        repo.write(str(file.relative_to(tmp_path / "llama")), file.read_bytes())
    code = f"from hf_posgen.convert import convert; print(convert('lab/llama', {str(tmp_path / 'ours')!r}))"
    environment = hub.environment(tmp_path / "home") | {"DISABLE_SAFETENSORS_CONVERSION": "1"}
    python(code, environment, tmp_path / "home")
    assert_same_logits(source, AutoModelForCausalLM.from_pretrained(tmp_path / "ours"))
    assert set(AutoTokenizer.from_pretrained(tmp_path / "ours").chat_template) == {"default", "tool_use"}
