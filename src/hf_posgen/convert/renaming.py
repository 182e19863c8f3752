"""State dicts under other names."""

import re
from collections.abc import Callable

import torch

State = dict[str, torch.Tensor]


def renamed(state: State, modules: dict[str, str]) -> State:
    """Return the tensors under our modules' names; N stands for the layer's number.

    Raises `ValueError` for a tensor without a place.
    """
    out = {}
    for key, tensor in state.items():
        module, leaf = key.rsplit(".", 1)
        layer = re.search(r"\.(\d+)\.", module)
        general = re.sub(r"\.\d+\.", ".N.", module, count=1)
        if general not in modules:
            raise ValueError(f"the tensor {key!r} has no place in our model")
        ours = modules[general].replace("N", layer[1] if layer else "N")
        out[f"{ours}.{leaf}"] = tensor
    return out


def split_fused(state: State, split: Callable[[torch.Tensor, int], torch.Tensor]) -> State:
    """Replace each `qkv_proj` by q_proj, k_proj, v_proj: `split(tensor, 0..2)`."""
    out = {}
    for key, tensor in state.items():
        names = [key.replace("qkv_proj", f"{x}_proj") for x in "qkv"] if "qkv_proj" in key else [key]
        for i, name in enumerate(names):
            out[name] = split(tensor, i) if len(names) == 3 else tensor
    return out


def thirds(tensor: torch.Tensor, i: int) -> torch.Tensor:
    """Split a tensor that holds all queries, then all keys, then all values."""
    return tensor.chunk(3)[i].clone()


def per_head(heads: int) -> Callable[[torch.Tensor, int], torch.Tensor]:
    """Return what splits a tensor that holds query, key and value of the first head, then of the second, ..."""
    return lambda tensor, i: tensor.unflatten(0, (heads, 3, -1))[:, i].flatten(0, 1)
