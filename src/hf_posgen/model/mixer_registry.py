"""How a layer moves information between tokens, by name. Each owns q_proj, k_proj, v_proj and o_proj."""

from .component import build
from .mixer_softmax import SoftmaxAttention

MIXERS = {"softmax": SoftmaxAttention}


def build_mixer(spec, config, layer_idx: int, encoding_spec):
    return build(spec, MIXERS, "mixer", config, layer_idx, encoding_spec)
