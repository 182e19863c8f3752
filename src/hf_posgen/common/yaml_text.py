"""YAML, read and written in one place.

Read as YAML 1.2 reads it: only true and false are truth values (no, on and off stay words, as `precision: no` needs),
1e6 is a number, and a date is text. A key that stands twice in a mapping is refused, where PyYAML would drop the first in
silence.
Written so that either version of YAML reads the same back.
"""

import re
from pathlib import Path

import yaml

FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?$|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)
INT = re.compile(r"[-+]?[0-9][0-9_]*$|0o[0-7]+$|0x[0-9a-fA-F]+$")
RESOLVERS = (
    ("tag:yaml.org,2002:null", re.compile(r"~$|null$|Null$|NULL$|$"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("tag:yaml.org,2002:int", INT, list("-+0123456789")),
    ("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789")),
    ("tag:yaml.org,2002:merge", re.compile(r"<<$"), ["<"]),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict = {}

    def construct_mapping(self, node, deep=False):
        lines: dict = {}
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if isinstance(key, list | dict):
                raise ValueError(f"line {line} has a list or a mapping for a key; it must be a name")
            if key in lines:
                raise ValueError(f"the key {key!r} stands twice in one mapping, on lines {lines[key]} and {line}")
            lines[key] = line
        return super().construct_mapping(node, deep)

    def construct_int(self, node):
        return int(self.construct_scalar(node), 0 if node.value[:2] in ("0o", "0x") else 10)


class _Dumper(yaml.SafeDumper):
    """PyYAML's, which quotes what YAML 1.1 would take for something else; the resolvers below add what 1.2 would."""


for _tag, _pattern, _first in RESOLVERS:
    _Loader.add_implicit_resolver(_tag, _pattern, _first)
    _Dumper.add_implicit_resolver(_tag, _pattern, _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_int)


def parse_yaml(text: str, source: str = "the text"):
    """Return what a YAML text holds. source: what an error calls it. Raises `ValueError` for what is no YAML, and for a key
    that stands twice in one mapping, by name and line."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{source} is no valid YAML: {' '.join(str(error).split())}") from None


def read_yaml(path: str | Path) -> dict:
    """Return a YAML mapping from a file in UTF-8. Raises `ValueError` where it isn't one, as `parse_yaml` does."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no such file: {path}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    tree = parse_yaml(text, str(path))
    if not isinstance(tree, dict):
        raise ValueError(f"{path} holds no mapping of keys to values")
    return tree


def dump_yaml(tree) -> str:
    """Return a tree of plain values as YAML, keys in their order."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
