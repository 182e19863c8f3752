"""Runs as nested dicts: laid over each other, checked key by key. Imports nothing heavy."""

import copy

from ..common.names import unknown
from ..common.yaml_text import parse_yaml


def merge(tree: dict, changes: dict) -> dict:
    """Return `tree` with `changes` laid over it, key by key; what is a component's name in one may be its dict in the
    other.

    A dict that names another component replaces the old one, hyper-parameters and all."""
    out = copy.deepcopy(tree)
    for key, value in changes.items():
        old = out.get(key)
        if isinstance(value, dict) and isinstance(old, str):
            old = {"name": old}
        if isinstance(value, dict) and isinstance(old, dict) and value.get("name", old.get("name")) == old.get("name"):
            out[key] = merge(old, value)
        else:
            out[key] = copy.deepcopy(value)
    return out


def override(tree: dict, dotted: str, text: str) -> dict:
    """Return `tree` with one dotted key set to a value written as YAML; a spec given as a name is refined, not replaced."""
    value = option_value(dotted, text)
    for key in reversed(dotted.split(".")):
        value = {key: value}
    return merge(tree, value)


def option_value(name: str, text: str):
    """Return the value of an option that is written as YAML, such as [16, 32] or {name: rope}; text that is no YAML
    is text. Raises `ValueError` for a key that stands twice."""
    try:
        return parse_yaml(text, f"--{name}")
    except ValueError as error:
        if "stands twice" in str(error):
            raise
        return text


def known(path: str, tree, allowed) -> dict:
    """Return `tree`, if it is a mapping with allowed keys alone. Raises `ValueError` that names the key and the
    nearest one."""
    if not isinstance(tree, dict):
        raise ValueError(f"{path.rstrip('.') or 'a run'} is {tree!r}; it must be a mapping")
    for key in tree:
        if key not in allowed:
            raise unknown("key", key, allowed, path)
    return tree
