"""One reader per class of transformers' models: its config as our settings, its tensors under our names."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .renaming import State, per_head, renamed, split_fused, thirds
from .rope import spec_from_rope


@dataclass(frozen=True)
class Reader:
    """settings(config): keywords of `PosGenConfig`, or a `ValueError` that names what we don't have.
    weights(config, state): a state dict of `PosGenForCausalLM`."""

    settings: Callable[..., dict]
    weights: Callable[..., State]


def refuse(model: str, **differences: bool) -> None:
    """Raise `ValueError` naming the settings that are on and have no counterpart."""
    used = [name for name, present in differences.items() if present]
    if used:
        raise ValueError(f"this {model} model has no counterpart here: it uses {', '.join(used)}")


def common(config) -> dict:
    """Return what every config calls by the same name, if need be through its `attribute_map`."""
    names = "vocab_size hidden_size num_hidden_layers num_attention_heads initializer_range tie_word_embeddings "
    names += "use_cache bos_token_id eos_token_id pad_token_id"
    return {name: getattr(config, name) for name in names.split()}


def gpt2_settings(config) -> dict:
    refuse(
        "GPT-2",
        add_cross_attention=config.add_cross_attention,
        scale_attn_by_inverse_layer_idx=config.scale_attn_by_inverse_layer_idx,
        unscaled_logits=not config.scale_attn_weights,
    )
    return common(config) | {
        "intermediate_size": config.n_inner,
        "hidden_act": config.activation_function,
        "max_position_embeddings": config.n_positions,
        "attention_dropout": config.attn_pdrop,
        "hidden_dropout": config.resid_pdrop,
        "norm_eps": config.layer_norm_epsilon,
        "attention_bias": True,
        "mlp_bias": True,
        "position_encoding": "learned",
    }


GPT2 = {
    "transformer.wte": "model.embed_tokens",
    "transformer.wpe": "model.position_encoding",
    "transformer.h.N.ln_1": "model.layers.N.input_layernorm",
    "transformer.h.N.attn.c_attn": "model.layers.N.self_attn.qkv_proj",
    "transformer.h.N.attn.c_proj": "model.layers.N.self_attn.o_proj",
    "transformer.h.N.ln_2": "model.layers.N.post_attention_layernorm",
    "transformer.h.N.mlp.c_fc": "model.layers.N.mlp.up_proj",
    "transformer.h.N.mlp.c_proj": "model.layers.N.mlp.down_proj",
    "transformer.ln_f": "model.norm",
    "lm_head": "lm_head",
}


def gpt2_weights(config, state: State) -> State:
    """Return the weights; GPT-2 keeps its matrices transposed."""
    upright = {key: tensor.T if re.search(r"\.c_\w+\.weight$", key) else tensor for key, tensor in state.items()}
    return split_fused(renamed(upright, GPT2), thirds)


def llama_settings(config) -> dict:
    spec, original = spec_from_rope(config)
    refuse("Llama", partial_rotary_factor=spec.pop("share", 1.0) != 1.0)
    return common(config) | {
        "intermediate_size": config.intermediate_size,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "hidden_act": config.hidden_act,
        "max_position_embeddings": original,
        "attention_dropout": config.attention_dropout,
        "norm": "rmsnorm",
        "norm_eps": config.rms_norm_eps,
        "mlp": "gated",
        "attention_bias": config.attention_bias,
        "mlp_bias": config.mlp_bias,
        "position_encoding": spec,
    }


def neox_settings(config) -> dict:
    refuse("GPT-NeoX", use_parallel_residual=config.use_parallel_residual)
    spec, original = spec_from_rope(config)
    return common(config) | {
        "intermediate_size": config.intermediate_size,
        "hidden_act": config.hidden_act,
        "max_position_embeddings": original,
        "attention_dropout": config.attention_dropout,
        "hidden_dropout": config.hidden_dropout,
        "norm_eps": config.layer_norm_eps,
        "attention_bias": config.attention_bias,
        "mlp_bias": True,
        "position_encoding": spec,
    }


NEOX = {
    "gpt_neox.embed_in": "model.embed_tokens",
    "gpt_neox.layers.N.input_layernorm": "model.layers.N.input_layernorm",
    "gpt_neox.layers.N.attention.query_key_value": "model.layers.N.self_attn.qkv_proj",
    "gpt_neox.layers.N.attention.dense": "model.layers.N.self_attn.o_proj",
    "gpt_neox.layers.N.post_attention_layernorm": "model.layers.N.post_attention_layernorm",
    "gpt_neox.layers.N.mlp.dense_h_to_4h": "model.layers.N.mlp.up_proj",
    "gpt_neox.layers.N.mlp.dense_4h_to_h": "model.layers.N.mlp.down_proj",
    "gpt_neox.final_layer_norm": "model.norm",
    "embed_out": "lm_head",
    "lm_head": "lm_head",
}


def neox_weights(config, state: State) -> State:
    return split_fused(renamed(state, NEOX), per_head(config.num_attention_heads))


def mpt_settings(config) -> dict:
    attention = config.attn_config
    refuse(
        "MPT",
        clip_qkv=bool(attention.clip_qkv),
        softmax_scale=attention.softmax_scale is not None,
        qk_ln=attention.qk_ln,
        prefix_lm=attention.prefix_lm,
        learned_positions=not attention.alibi,
        multiquery_attention=attention.attn_type != "multihead_attention",
        alibi_bias_max_other_than_8=attention.alibi_bias_max != 8,
        logit_scale=config.logit_scale is not None,
    )
    return common(config) | {
        "max_position_embeddings": config.max_seq_len,
        "attention_dropout": attention.attn_pdrop,
        "hidden_dropout": attention.attn_pdrop,
        "norm_eps": config.layer_norm_epsilon,
        "position_encoding": "alibi",
    }


MPT = {
    "transformer.wte": "model.embed_tokens",
    "transformer.blocks.N.norm_1": "model.layers.N.input_layernorm",
    "transformer.blocks.N.attn.Wqkv": "model.layers.N.self_attn.qkv_proj",
    "transformer.blocks.N.attn.out_proj": "model.layers.N.self_attn.o_proj",
    "transformer.blocks.N.norm_2": "model.layers.N.post_attention_layernorm",
    "transformer.blocks.N.ffn.up_proj": "model.layers.N.mlp.up_proj",
    "transformer.blocks.N.ffn.down_proj": "model.layers.N.mlp.down_proj",
    "transformer.norm_f": "model.norm",
    "lm_head": "lm_head",
}


def mpt_weights(config, state: State) -> State:
    """Return the weights; MPT's LayerNorms have no bias, ours get zeros."""
    ours = split_fused(renamed(state, MPT), thirds)
    norms = {key: tensor for key, tensor in ours.items() if "norm" in key}
    return ours | {key.replace("weight", "bias"): torch.zeros_like(tensor) for key, tensor in norms.items()}


def bloom_settings(config) -> dict:
    refuse(
        "BLOOM",
        apply_residual_connection_post_layernorm=config.apply_residual_connection_post_layernorm,
        tensor_parallel_slices=config.slow_but_exact and config.pretraining_tp > 1,
    )
    return common(config) | {
        "hidden_act": "gelu_pytorch_tanh",
        "attention_dropout": config.attention_dropout,
        "hidden_dropout": config.hidden_dropout,
        "norm_eps": config.layer_norm_epsilon,
        "attention_bias": True,
        "mlp_bias": True,
        "position_encoding": "alibi",
        "tie_word_embeddings": False,
    }


BLOOM = {
    "transformer.word_embeddings": "model.embed_tokens",
    "transformer.word_embeddings_layernorm": "embedding_norm",
    "transformer.h.N.input_layernorm": "model.layers.N.input_layernorm",
    "transformer.h.N.self_attention.query_key_value": "model.layers.N.self_attn.qkv_proj",
    "transformer.h.N.self_attention.dense": "model.layers.N.self_attn.o_proj",
    "transformer.h.N.post_attention_layernorm": "model.layers.N.post_attention_layernorm",
    "transformer.h.N.mlp.dense_h_to_4h": "model.layers.N.mlp.up_proj",
    "transformer.h.N.mlp.dense_4h_to_h": "model.layers.N.mlp.down_proj",
    "transformer.ln_f": "model.norm",
    "lm_head": "lm_head",
}


def bloom_weights(config, state: State) -> State:
    """Return the weights. BLOOM normalises the embeddings, which depend on the token alone: the table is normalised once,
    the head keeps the raw one."""
    ours = split_fused(renamed(state, BLOOM), per_head(config.num_attention_heads))
    weight, bias = ours.pop("embedding_norm.weight"), ours.pop("embedding_norm.bias")
    raw = ours["model.embed_tokens.weight"]
    ours["lm_head.weight"] = ours.get("lm_head.weight", raw).clone()
    ours["model.embed_tokens.weight"] = F.layer_norm(raw, raw.shape[1:], weight, bias, config.layer_norm_epsilon)
    return ours


READERS = {
    "gpt2": Reader(gpt2_settings, gpt2_weights),
    "llama": Reader(llama_settings, lambda config, state: state),  # our names are Llama's
    "gpt_neox": Reader(neox_settings, neox_weights),
    "mpt": Reader(mpt_settings, mpt_weights),
    "bloom": Reader(bloom_settings, bloom_weights),
}
