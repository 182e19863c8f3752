"""A folder with a model, written as another class of model."""

import shutil
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
from transformers import AutoConfig, AutoModelForCausalLM

from .. import register_auto_classes
from .models import compare, from_transformers, refuse, to_llama

TOKENIZER_FILES = ["tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt", "*.model"]
WEIGHT_FILES = ["*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json"]


def convert(source: str | Path, out: str | Path, to: str | None = None) -> Path:
    """Write `source`, a folder or a Hub id, to the folder `out` as another class of model, and its tokenizer; return `out`.

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
    refuse(config)
    model = AutoModelForCausalLM.from_pretrained(folder)
    converted = (to_llama if target == "llama" else from_transformers)(model)
    compare(model, converted)
    converted.save_pretrained(out)
    for pattern in TOKENIZER_FILES:
        for file in folder.glob(pattern):
            shutil.copyfile(file, out / file.name)
    return out


def _local(source: str | Path) -> Path:
    """Return the folder itself, or where the Hub's copy lies."""
    if Path(source).is_dir():
        return Path(source)
    try:
        return Path(snapshot_download(str(source), allow_patterns=WEIGHT_FILES + TOKENIZER_FILES))
    except (RepositoryNotFoundError, HFValidationError):
        raise ValueError(f"{source} is neither a folder nor a model on the Hub") from None
