"""What makes two evaluations the same one: digests of what was evaluated, never its name."""

import hashlib
import inspect
import json
from pathlib import Path

import torch
from torch import nn

DIGITS = 12
VOLATILE = ("transformers_version", "_name_or_path")  # of a configuration: they change nothing that the model computes
OUR_CODE = ("transformers", "hf_posgen", "torch")  # of known versions; anything else is read
IDENTITY = {  # columns that all rows of a file share: what it means where they don't
    "model_digest": "the model's weights, configuration or code differ",
    "task_digest": "the task differs",
    "data_seed": "the sequences were drawn with another seed",
    "prompt": "the prompt differs",
    "symbols": "the symbols are other tokens",
}


def model_digest(model: nn.Module, config_file: Path) -> str:
    """Return twelve hex digits of a loaded model: its weights, its configuration, and code of its own."""
    digest = hashlib.blake2b()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    config = {key: value for key, value in json.loads(config_file.read_text("utf-8")).items() if key not in VOLATILE}
    digest.update(json.dumps(config, sort_keys=True).encode())
    for file in _files_of_its_code(type(model)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:DIGITS]


def _files_of_its_code(cls: type) -> list[Path]:
    """Return the Python files beside a model's class, where that comes with the model."""
    if cls.__module__.partition(".")[0] in OUR_CODE:
        return []
    return sorted(Path(inspect.getfile(cls)).parent.glob("*.py"))


def digest_of(*values) -> str:
    """Return eight hex digits of values that JSON can hold."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def describe_difference(rows: list[dict], facts: dict) -> str | None:
    """Return in words by what some rows belong to another evaluation than that of some facts; None where they don't."""
    for key, what in IDENTITY.items():
        others = {row.get(key) for row in rows} - {facts.get(key)}
        if others:
            there = "not recorded" if others == {None} else ", ".join(sorted(map(str, others)))
            return f"{what} ({there}, and {facts.get(key)} now)"
    return None
