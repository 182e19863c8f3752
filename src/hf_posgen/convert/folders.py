"""A folder with a model, written as another class of model."""

import os
import shutil
import tempfile
from pathlib import Path

from huggingface_hub.errors import HFValidationError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from .. import register_auto_classes
from .models import compare, from_transformers, refuse, to_llama


def convert(source: str | Path, out: str | Path, to: str | None = None) -> Path:
    """Write `source`, a folder or a Hub id, to the folder `out` as another class of model, and its tokenizer; return `out`.

    `to` is "posgen" or "llama"; None: Llama for one of ours, ours for all others. transformers itself opens the model and
    the tokenizer and writes them, so that whatever format the weights have is read, and whatever the tokenizer has (its
    chat templates, ...) travels. Both models are run on the same tokens before anything is written; `out` appears when it
    is complete. Raises `ValueError` with every difference that forbids the conversion, `FileExistsError` where `out` holds
    something, `RuntimeError` where the logits disagree.
    """
    register_auto_classes()
    source, out = str(source), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"{out} is not an empty folder: convert writes a new one")
    config = _config(source)
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
    tokenizer = _tokenizer(source)
    model = AutoModelForCausalLM.from_pretrained(source)
    converted = (to_llama if target == "llama" else from_transformers)(model)
    compare(model, converted)
    _write(out, [converted] if tokenizer is None else [converted, tokenizer])
    return out


def _config(source: str):
    try:
        return AutoConfig.from_pretrained(source)
    except (OSError, HFValidationError) as error:
        if Path(source).is_dir():
            raise
        raise ValueError(f"{source} is neither a folder nor a model on the Hub that can be reached") from error


def _tokenizer(source: str) -> PreTrainedTokenizerBase | None:
    """Return the tokenizer, or None where there is none: transformers then opens one without a vocabulary, or nothing."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        if Path(source, "tokenizer_config.json").is_file():
            raise
        return None
    named = tokenizer.init_kwargs.get("tokenizer_file") or tokenizer.init_kwargs.get("vocab_file")
    return tokenizer if named or len(tokenizer.get_vocab()) > len(tokenizer.get_added_vocab()) + 1 else None


def _write(out: Path, saved: list) -> None:
    """Save everything beside, then rename: `out` is complete or isn't there."""
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        for thing in saved:
            thing.save_pretrained(beside)
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o777 & ~umask)  # as any new folder; a temporary one is its owner's alone
        if out.exists():
            out.rmdir()
        beside.rename(out)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
