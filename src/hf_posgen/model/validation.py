"""What can't work is refused when the model is built, in a sentence that says what can."""

from .attention_bias import Pairwise
from .component import resolve_field
from .encoding_registry import resolve_encoding
from .logit_scale import LOGIT_SCALES
from .mixer_registry import MIXERS
from .position_sampler import SAMPLERS

IMPLEMENTATIONS = ("eager", "sdpa", "flex_attention")

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
    config.auto_map = dict(AUTO_MAP)  # whatever class is saved, the folder opens with each of the three


def refuse_implementation(config) -> None:
    """`ValueError` for an attention implementation that would drop the bias or isn't known."""
    if config._attn_implementation not in IMPLEMENTATIONS:
        raise ValueError(
            f"attn_implementation {config._attn_implementation!r} is not supported; allowed: {', '.join(IMPLEMENTATIONS)} "
            "(sdpa takes flash kernels by itself where they can carry the bias)"
        )
