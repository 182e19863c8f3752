"""Runs as nested dicts: read from YAML, laid over each other, checked key by key. Imports nothing heavy."""

import copy
from pathlib import Path

import yaml

from ..common.names import unknown


def read_yaml(path: str | Path) -> dict:
    """Return a YAML mapping from a file. Raises `ValueError` where it isn't one."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no such file: {path}")
    try:
        tree = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise ValueError(f"{path} holds no mapping of keys to values")
    return tree


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
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    for key in reversed(dotted.split(".")):
        value = {key: value}
    return merge(tree, value)


def known(path: str, tree, allowed) -> dict:
    """Return `tree`, if it is a mapping with allowed keys alone. Raises `ValueError` that names the key and the
    nearest one."""
    if not isinstance(tree, dict):
        raise ValueError(f"{path.rstrip('.') or 'a run'} is {tree!r}; it must be a mapping")
    for key in tree:
        if key not in allowed:
            raise unknown("key", key, allowed, path)
    return tree


def typed(name: str, value, wanted: type, optional: bool = False):
    """Return a value of a type; whole numbers pass for floats, lists for tuples, "1e-3" (text to YAML) for a float.

    Raises `ValueError` for any other."""
    if value is None and optional:
        return None
    if wanted is float and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is tuple and isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if type(value) is not wanted:
        what = {tuple: "a list of names", int: "a whole number", float: "a number", str: "text", bool: "true or false"}
        raise ValueError(f"{name} is {value!r}; it must be {what[wanted]}")
    return value
