"""An open model as one of another class: the same weights, the same numbers."""

import torch
from transformers import LlamaForCausalLM

from ..model.configuration_posgen import PosGenConfig
from ..model.modeling_posgen import PosGenForCausalLM
from .llama import llama_config
from .readers import READERS


def from_transformers(model) -> PosGenForCausalLM:
    """Return our model with the weights, the dtype and the numbers of one of transformers' (the package has a table)."""
    settings = _reader(model.config).settings(model.config)
    state = _reader(model.config).weights(model.config, model.state_dict())
    return _with_weights(PosGenForCausalLM, PosGenConfig(**settings), state, model)


def to_llama(model: PosGenForCausalLM) -> LlamaForCausalLM:
    """Return Llama with the weights and the numbers of a model of the RoPE family; all tensors keep their names."""
    return _with_weights(LlamaForCausalLM, llama_config(model.config), model.state_dict(), model)


def _with_weights(cls, config, state, source):
    converted = cls(config).to(source.dtype)
    converted.load_state_dict(state)
    converted.tie_weights()
    if source.generation_config is not None:
        converted.generation_config = source.generation_config
    return converted.eval()


def _reader(config):
    if config.model_type not in READERS:
        allowed = ", ".join(sorted(READERS))
        raise ValueError(f"no conversion from {config.model_type!r} to posgen; allowed: {allowed}")
    return READERS[config.model_type]


def refuse(config) -> None:
    """Raise `ValueError` for a model whose config says that it can't be converted: before any weight is read."""
    if config.model_type == "posgen":
        llama_config(config)
    else:
        _reader(config).settings(config)


@torch.no_grad()
def compare(model, converted) -> None:
    """Raise `RuntimeError` unless the two give the same logits for the same random tokens, up to their dtype's rounding."""
    length = min(32, getattr(converted.config, "max_position_embeddings", 32))
    ids = torch.randint(converted.config.vocab_size, (2, length), generator=torch.Generator().manual_seed(0))
    expected, actual = (m.eval()(ids, use_cache=False).logits.float() for m in (model, converted))
    error, size = (actual - expected).abs().max().item(), expected.abs().max().item()
    allowed = 100 * torch.finfo(model.dtype).eps * max(1.0, size)
    if not error <= allowed:
        raise RuntimeError(
            f"the converted model's logits differ by {error:.2g}, more than the {allowed:.2g} of rounding"
        )
