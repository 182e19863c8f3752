"""Which files of a folder transformers wrote when a model and its tokenizer were saved there. Loads neither."""

import json
from pathlib import Path

CODE = "*.py"
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
MODEL = ("config.json", "generation_config.json", *WEIGHTS)


def model_files(folder: Path) -> list[Path]:
    """Return the files of a saved model and its tokenizer, with the code that either needs."""
    patterns = (*MODEL, CODE, *tokenizer_patterns(folder))
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files of a saved tokenizer, without code."""
    return sorted({path for pattern in tokenizer_patterns(folder) for path in folder.glob(pattern) if path.is_file()})


def tokenizer_patterns(folder: Path) -> list[str]:
    """Return the names of what a tokenizer saves, as patterns in its folder: what any tokenizer may write, in transformers'
    own names, and the vocabulary files of the class that the folder names."""
    from transformers.tokenization_utils_base import (
        ADDED_TOKENS_FILE,
        CHAT_TEMPLATE_DIR,
        CHAT_TEMPLATE_FILE,
        FULL_TOKENIZER_FILE,
        SPECIAL_TOKENS_MAP_FILE,
        TOKENIZER_CONFIG_FILE,
    )

    common = (
        FULL_TOKENIZER_FILE,
        TOKENIZER_CONFIG_FILE,
        SPECIAL_TOKENS_MAP_FILE,
        ADDED_TOKENS_FILE,
        CHAT_TEMPLATE_FILE,
    )
    return [*common, f"{CHAT_TEMPLATE_DIR}/*.jinja", *_vocabulary(folder / TOKENIZER_CONFIG_FILE)]


def _vocabulary(config: Path) -> list[str]:
    """Return the file names of the vocabulary of a tokenizer's class; none for a class that transformers doesn't know."""
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

    try:
        name = json.loads(config.read_text(encoding="utf-8")).get("tokenizer_class")
    except (OSError, ValueError, AttributeError):
        return []
    cls = tokenizer_class_from_name(name) if isinstance(name, str) else None
    return [file for file in getattr(cls, "vocab_files_names", {}).values() if isinstance(file, str)]
