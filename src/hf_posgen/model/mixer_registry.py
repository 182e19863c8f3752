"""How a layer moves information between tokens, by name. Those of its projections that a mixer has are called q_proj,
k_proj, v_proj and o_proj."""

from .component import build
from .mixer_linear import GatedLinearAttention, LinearAttention
from .mixer_recurrent import Recurrence
from .mixer_softmax import SoftmaxAttention

MIXERS = {
    "softmax": SoftmaxAttention,
    "linear": LinearAttention,
    "gated_linear": GatedLinearAttention,
    "recurrence": Recurrence,
}


def build_mixer(spec, config, layer_idx: int, encoding_spec):
    return build(spec, MIXERS, "mixer", config, layer_idx, encoding_spec)
