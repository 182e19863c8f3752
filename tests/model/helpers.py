"""Tiny models whose every parameter matters."""

import torch

from hf_posgen.model.configuration_posgen import PosGenConfig
from hf_posgen.model.encoding_registry import ENCODINGS
from hf_posgen.model.modeling_posgen import PosGenForCausalLM

# One arm per name, and those hyper-parameters that take another path through the class.
SPECS = [{"name": name} for name in ENCODINGS] + [
    {"name": "rope", "share": 0.5},
    {"name": "rope", "grid": "linear", "top": 3.0},
    {"name": "rope", "p": 0.5},
    {"name": "rope_longrope", "long_factor": [1.0, 2.0, 3.0, 4.0]},
    {"name": "rope_yarn", "attention_factor": 1.0},
    {"name": "kerple", "form": "power"},
    {"name": "clipped", "distances": 4},
    {"name": "shaw", "max_distance": 3},
    {"name": "xpos", "centre": 8, "scale_base": 32.0},
    {"name": "alibi", "slopes": "learned"},
    {"name": "alibi", "slopes": "geometric"},
    {"name": "fire", "threshold": 4.0},
    {"name": "cope", "max_position": 4},
    {"name": "t5", "buckets": 8, "max_distance": 12},
    {"name": "grape", "gates": "query"},
    {"name": "grape", "gates": "key"},
    {"name": "selective_rope", "width": 1},
]


def spec_id(spec) -> str:
    return "-".join(str(value) for value in spec.values())


def tiny(spec="rope", dtype=torch.float32, seed=0, **overrides) -> PosGenForCausalLM:
    """Two layers, four heads over two key heads, trained-looking parameters (none at its initial value)."""
    name = spec["name"] if isinstance(spec, dict) else spec
    depends = isinstance(name, str) and name in ENCODINGS and ENCODINGS[name].depends_on_length
    settings = {
        "vocab_size": 13,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 6 if depends else 64,
        "initializer_range": 0.2,
        "embedding_initializer_range": 1.0,
        "pad_token_id": 0,
        "position_encoding": spec,
    } | overrides
    torch.manual_seed(seed)
    model = PosGenForCausalLM(PosGenConfig(**settings))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.to(dtype).eval()


def tokens(*shape, seed=1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, 13, shape, generator=generator)
