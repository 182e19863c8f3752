"""Which of our models are a Llama, and the config it has then."""

from transformers import LlamaConfig

from ..model.configuration_posgen import PosGenConfig
from ..model.validation import complete_config
from .rope import rope_from_spec

SAME = [
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "attention_dropout",
    "initializer_range",
    "tie_word_embeddings",
    "use_cache",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "attention_bias",
    "mlp_bias",
]


def llama_config(config: PosGenConfig) -> LlamaConfig:
    """Return the config of the same model as a Llama. Raise `ValueError` naming every difference that it can't express."""
    config = PosGenConfig(**config.to_dict())
    complete_config(config)
    reasons = _differences(config)
    rope = {}
    try:
        parameters, longest = rope_from_spec(config.per_layer("position_encoding")[0], config)
        rope = {"rope_parameters": parameters, "max_position_embeddings": longest}
    except ValueError as error:
        reasons.append(str(error))
    if reasons:
        raise ValueError(f"this model is no Llama: {'; '.join(reasons)}")
    return LlamaConfig(**{name: getattr(config, name) for name in SAME}, rms_norm_eps=config.norm_eps, **rope)


def _differences(config: PosGenConfig) -> list[str]:
    reasons = []
    for field, llamas in {"norm": "rmsnorm", "mlp": "gated"}.items():
        if getattr(config, field) != llamas:
            reasons.append(f"{field} is {getattr(config, field)!r} and Llama's is {llamas!r}")
    for field, llamas in {"mixer": "softmax", "logit_scale": "none"}.items():
        others = sorted({spec["name"] for spec in config.per_layer(field)} - {llamas})
        if others:
            reasons.append(f"{field} is {', '.join(others)} and Llama's is {llamas!r}")
    encodings = config.per_layer("position_encoding")
    if any(encoding != encodings[0] for encoding in encodings):
        reasons.append("position_encoding differs from layer to layer and Llama has one")
    return reasons
