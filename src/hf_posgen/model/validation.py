"""What can't work is refused when the model is built, in a sentence that says what can."""

import torch

from .component import resolve_field
from .context import build_context
from .encoding_registry import ENCODINGS, resolve_encoding
from .logit_scale import LOGIT_SCALES
from .mixer_registry import MIXERS
from .position_encoding import PositionEncoding
from .position_sampler import SAMPLERS

AUTO_MAP = {
    "AutoConfig": "configuration_posgen.PosGenConfig",
    "AutoModel": "modeling_posgen.PosGenModel",
    "AutoModelForCausalLM": "modeling_posgen.PosGenForCausalLM",
}


def complete_config(config) -> None:
    """Fill the component fields with every effective hyper-parameter, in place."""
    config.position_encoding = resolve_encoding(config.position_encoding)
    config.position_sampler = resolve_field(config.position_sampler, SAMPLERS, "position_sampler")
    config.logit_scale = resolve_field(config.logit_scale, LOGIT_SCALES, "logit_scale")
    config.mixer = resolve_field(config.mixer, MIXERS, "mixer")
    for encoding, mixer in zip(config.per_layer("position_encoding"), config.per_layer("mixer"), strict=True):
        reason = MIXERS[mixer["name"]].accepts(ENCODINGS[encoding["name"]])
        if reason is not None:
            raise ValueError(f"position_encoding {encoding['name']!r} can't act in mixer {mixer['name']!r}: {reason}")
    config.auto_map = dict(AUTO_MAP)  # whatever class is saved, the folder opens with each of the three


def bias_kind(encoding: PositionEncoding) -> str | None:
    """Return the kind of bias that an encoding adds to four tokens; None: it adds none."""
    device = next((parameter.device for parameter in encoding.parameters()), torch.device("cpu"))
    with torch.no_grad(), device:  # models are also built where tensors have no data
        config = encoding.config
        x = torch.zeros(1, 4, config.hidden_size)
        q, k = (torch.zeros(1, n, 4, config.head_dim) for n in (config.num_attention_heads, config.num_key_value_heads))
        context = build_context(x, needs_lengths=encoding.depends_on_length)
        queries, keys = context.with_hidden(x, encoding, None)
        tables = encoding.tables(queries, keys)
        bias = encoding.bias(queries.with_vectors(q), keys.with_vectors(k), *tables)
    return None if bias is None else bias.kind


def implementations(kind: str | None) -> tuple[str, ...]:
    """Return the attention implementations that carry a kind of bias."""
    return ("eager", "sdpa") if kind == "pairwise" else ("eager", "sdpa", "flex_attention")


def refuse_implementation(config, kinds: set[str | None]) -> None:
    """Raise `ValueError` for an attention implementation that would drop a kind of bias, or isn't known."""
    implementation = config._attn_implementation
    for kind in kinds or {None}:
        if implementation not in implementations(kind):
            raise ValueError(
                f"attn_implementation {implementation!r} does not carry {f'a {kind} bias' if kind else 'this model'}; "
                f"allowed: {', '.join(implementations(kind))} (sdpa takes flash kernels by itself where they can)"
            )
