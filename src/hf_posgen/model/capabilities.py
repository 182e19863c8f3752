"""The table of capabilities: probed on a tiny model, never written by hand."""

import torch

from .configuration_posgen import PosGenConfig
from .encoding_registry import ENCODINGS
from .mixer_registry import MIXERS
from .modeling_posgen import PosGenForCausalLM
from .position_encoding import PositionEncoding
from .validation import bias_kind, implementations

LENGTH, SHIFT = 12, 1000


def capabilities(names=None) -> list[dict]:
    """Return one row per encoding.

    Each says where it acts, its kind of bias, whether it is causal and shift-invariant, its kernels, cache and mixers, its
    extra parameters (of a probe with 4 heads of 8, 32 rows and 2 layers), how memory beyond the plain model's grows with
    L, and the paper.
    """
    return [_row(name) for name in (names or ENCODINGS)]


def _probe(name: str) -> PosGenForCausalLM:
    config = PosGenConfig(
        vocab_size=16,
        hidden_size=32,
        num_attention_heads=4,
        max_position_embeddings=32 if not ENCODINGS[name].depends_on_length else LENGTH + 2,
        initializer_range=0.3,
        position_encoding=name,
        out_of_range="wrap",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PosGenForCausalLM(config)
        with torch.no_grad():  # trained values differ from the initial ones, which may be constant
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


@torch.no_grad()
def _row(name: str) -> dict:
    model, cls = _probe(name), ENCODINGS[name]
    tokens = torch.arange(LENGTH)[None] % 16
    logits = model(tokens, use_cache=False).logits
    longer = model(torch.cat([tokens, tokens[:, :6]], 1), use_cache=False).logits[:, :LENGTH]
    shifted = model(tokens, positions=torch.arange(LENGTH)[None] + SHIFT, use_cache=False).logits
    encodings = [module for module in model.modules() if isinstance(module, PositionEncoding)]
    kind = bias_kind(encodings[0])
    own = sum(p.numel() for n, p in model.named_parameters() if "position_encoding" in n)
    return {
        "encoding": name,
        "acts on": ", ".join(cls.sites()) or "nothing",
        "bias": kind or "-",
        "causal": bool((longer - logits).abs().max() < 1e-4),
        "shift-invariant": bool((shifted - logits).abs().max() < 1e-4),
        "kernels": ", ".join(implementations(kind)),
        "cache": "embeddings" if cls.depends_on_length else "keys, values",
        "mixers": ", ".join(mixer for mixer, of_name in MIXERS.items() if of_name.accepts(cls) is None),
        "parameters": own,
        "memory": {"pairwise": "L × chunk"}.get(kind, "L"),
        "paper": cls.paper or "-",
    }
