"""Which files of a folder transformers wrote when a model and its tokenizer were saved there. Loads neither."""

import ast
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
    """Return the file names of the vocabulary of a tokenizer's class, or of those that code beside it defines."""
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

    try:
        name = json.loads(config.read_text(encoding="utf-8")).get("tokenizer_class")
    except (OSError, ValueError, AttributeError):
        return []
    cls = tokenizer_class_from_name(name) if isinstance(name, str) else None
    known = [file for file in getattr(cls, "vocab_files_names", {}).values() if isinstance(file, str)]
    return known if cls else [name for code in sorted(config.parent.glob(CODE)) for name in _named_in(code)]


def _named_in(code: Path) -> list[str]:
    """Return the file names that a module assigns to `vocab_files_names`, read from its text: nothing of it runs."""
    return [
        value.value
        for node in ast.walk(ast.parse(code.read_bytes()))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        if any(isinstance(one, ast.Name) and one.id.lower() == "vocab_files_names" for one in node.targets)
        for value in node.value.values
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]
