"""Weights from transformers' models into ours, and from ours into Llama: same numbers, another class.

| from | becomes | refused |
|---|---|---|
| gpt2 | learned positions, layernorm, plain MLP, biases | cross-attention, logits unscaled or scaled by layer |
| llama | RoPE and each of its scalings, grouped keys, rmsnorm, gated MLP | partial rotation, YaRN with `truncate: false` |
| gpt_neox | partial RoPE, layernorm, plain MLP | `use_parallel_residual: true` (attention and MLP side by side) |
| mpt | ALiBi, layernorm, plain MLP | clipped or normalised queries and keys, a softmax or logit scale, prefix attention |
| bloom | ALiBi, layernorm, plain MLP | a residual taken after the LayerNorm, tensor-parallel slices |
| posgen | Llama, for the RoPE family | what Llama has not: layernorm, plain MLP, other encodings, logit scales, mixers |

What the numbers of a forward pass don't show, and training does: MPT's LayerNorms have no bias, ours start from zeros;
BLOOM normalises its embeddings, ours hold the normalised table, so that head and embeddings are no longer tied; GPT-2's
and NeoX's dropout on embeddings becomes that of the residuals; Llama has no `hidden_dropout`, no sampler and no
`out_of_range`. Cached decoding with dynamic NTK and LongRoPE: Llama keeps keys as they were rotated when they came in, we
rotate them anew as the text grows, so the two agree on whole passes.

T5 is not in the table: an encoder-decoder does not fit a decoder. Its decoder's self-attention does, once the queries'
weights are multiplied by √K (T5 does not scale its logits); `tests/conformance/test_t5_attention.py` shows it.
"""

import shutil
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM

from .. import register_auto_classes
from ..model.configuration_posgen import PosGenConfig
from ..model.modeling_posgen import PosGenForCausalLM
from .llama import llama_config
from .readers import READERS

TOKENIZER_FILES = ["tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt", "*.model"]
WEIGHT_FILES = ["*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json"]


def convert(source: str | Path, out: str | Path, to: str | None = None) -> Path:
    """Write `source`, a folder or a Hub id, to the folder `out` as another class of model, with its tokenizer.

    `to` is "posgen" or "llama"; None: Llama for one of ours, ours for all others. Both models are run on the same tokens
    before anything is written. Raises `ValueError` with every difference that forbids the conversion, `FileExistsError`
    where `out` holds something, `RuntimeError` where the logits disagree.
    """
    register_auto_classes()
    folder, out = _local(source), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"{out} is not an empty folder: convert writes a new one")
    config = AutoConfig.from_pretrained(folder)
    target = to or ("llama" if config.model_type == "posgen" else "posgen")
    if target not in ("posgen", "llama"):
        raise ValueError(f"to is {target!r}; allowed: posgen, llama")
    if config.model_type == target:
        raise ValueError(f"{source} is a {target} model already")
    if target == "llama" and config.model_type != "posgen":
        raise ValueError(
            f"only posgen models convert to llama, and {source} is a {config.model_type}: convert it first"
        )
    _refuse(config)
    model = AutoModelForCausalLM.from_pretrained(folder)
    converted = (to_llama if target == "llama" else from_transformers)(model)
    _compare(model, converted)
    converted.save_pretrained(out)
    for pattern in TOKENIZER_FILES:
        for file in folder.glob(pattern):
            shutil.copyfile(file, out / file.name)
    return out


def from_transformers(model) -> PosGenForCausalLM:
    """Our model with the weights, the dtype and the numbers of one of transformers' (a table above says which)."""
    settings = _reader(model.config).settings(model.config)
    state = _reader(model.config).weights(model.config, model.state_dict())
    return _filled(PosGenForCausalLM, PosGenConfig(**settings), state, model)


def to_llama(model: PosGenForCausalLM) -> LlamaForCausalLM:
    """Llama with the weights and the numbers of a model of the RoPE family; the names of all tensors are the same."""
    return _filled(LlamaForCausalLM, llama_config(model.config), model.state_dict(), model)


def _filled(cls, config, state, like):
    converted = cls(config).to(like.dtype)
    converted.load_state_dict(state)
    converted.tie_weights()
    if like.generation_config is not None:
        converted.generation_config = like.generation_config
    return converted.eval()


def _reader(config):
    if config.model_type not in READERS:
        allowed = ", ".join(sorted(READERS))
        raise ValueError(f"no conversion from {config.model_type!r} to posgen; allowed: {allowed}")
    return READERS[config.model_type]


def _refuse(config) -> None:
    """What can't be converted is refused before any weight is read."""
    if config.model_type == "posgen":
        llama_config(config)
    else:
        _reader(config).settings(config)


@torch.no_grad()
def _compare(model, converted) -> None:
    """Logits of the two on the same random tokens, within the rounding of their dtype."""
    length = min(32, getattr(converted.config, "max_position_embeddings", 32))
    ids = torch.randint(converted.config.vocab_size, (2, length), generator=torch.Generator().manual_seed(0))
    expected, actual = (m.eval()(ids, use_cache=False).logits.float() for m in (model, converted))
    error, size = (actual - expected).abs().max().item(), expected.abs().max().item()
    allowed = 100 * torch.finfo(model.dtype).eps * max(1.0, size)
    if not error <= allowed:
        raise RuntimeError(
            f"the converted model's logits differ by {error:.2g}, more than the {allowed:.2g} of rounding"
        )


def _local(source: str | Path) -> Path:
    """The folder itself, or where the Hub's copy lies."""
    if Path(source).is_dir():
        return Path(source)
    try:
        return Path(snapshot_download(str(source), allow_patterns=WEIGHT_FILES + TOKENIZER_FILES))
    except (RepositoryNotFoundError, HFValidationError):
        raise ValueError(f"{source} is neither a folder nor a model on the Hub") from None
