"""YAML is read in one place: nothing is dropped or turned into something else in silence."""

import ast
from pathlib import Path

import pytest
import yaml

from hf_posgen.common.yaml_text import dump_yaml, parse_yaml, read_yaml
from hf_posgen.run.tree import override

SOURCE = Path(__file__).parents[2] / "src"


def test_words_stay_words_and_numbers_are_numbers():
    text = "{a: no, on: yes, b: 1e6, c: 010, d: '1:30', e: 2024-01-01, f: true, g: ~, h: 1_000, i: 0x1f, j: -1.5e-3}"
    expected = {"a": "no", "on": "yes", "b": 1e6, "c": 10, "d": "1:30", "e": "2024-01-01", "f": True, "g": None}
    assert parse_yaml(text) == expected | {"h": 1000, "i": 31, "j": -1.5e-3}
    assert type(parse_yaml("1e6")) is float and type(parse_yaml("10")) is int


def test_what_is_written_reads_the_same_in_either_version():
    tree = {
        "arm": "no",
        "panel": "1e6",
        "on": ["yes", "010", "1:30", "2024-01-01", "~", "ü", 1e-5, 1e20, 3, None, True],
    }
    assert parse_yaml(dump_yaml(tree)) == tree == yaml.safe_load(dump_yaml(tree))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train: {steps: 1000}\nseed: 0\ntrain: {batch_size: 8}", "the key 'train' stands twice .* lines 1 and 3"),
        ("train:\n  steps: 1\n  clip: 1.0\n  steps: 2", "the key 'steps' stands twice .* lines 2 and 4"),
        ("panels:\n  a: {arms: {rope: {}, 'rope': {}}}", "the key 'rope' stands twice"),
        ("list: [{a: 1, a: 2}]", "the key 'a' stands twice"),
        ("{1: a, 0x1: b}", "the key 1 stands twice"),
        ("? [1, 2]\n: 3", "a list or a mapping for a key"),
        ("a: [", "no valid YAML"),
    ],
)
def test_a_key_that_stands_twice_is_refused_by_name_and_line(tmp_path, text, message):
    file = tmp_path / "a.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"a.yaml is no valid YAML: .*{message}|a.yaml is {message}") as error:
        read_yaml(file)
    assert "\n" not in str(error.value)


def test_merged_keys_are_no_repetition():
    assert parse_yaml("base: &b {a: 1, c: 2}\nx: {<<: *b, a: 3}")["x"] == {"a": 3, "c": 2}


def test_options_are_read_by_the_same_rules():
    assert override({}, "train.precision", "no") == {"train": {"precision": "no"}}
    assert override({}, "model.position_encoding.base", "1e6")["model"]["position_encoding"] == {"base": 1e6}
    assert override({}, "arm", "[not yaml") == {"arm": "[not yaml"}
    with pytest.raises(ValueError, match="--task is no valid YAML: the key 'offset' stands twice"):
        override({}, "task", "{name: fixed_offset, offset: 1, offset: 2}")


def test_a_file_in_another_encoding_is_named(tmp_path):
    (tmp_path / "a.yaml").write_bytes("arm: größer".encode("latin-1"))
    with pytest.raises(ValueError, match="a.yaml is not UTF-8: .* at byte 7"):
        read_yaml(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xef\xbb\xbfarm: x")
    assert read_yaml(tmp_path / "b.yaml") == {"arm": "x"}, "a byte-order mark is no part of the first key"


def test_no_other_module_reads_yaml():
    readers = {"load", "safe_load", "full_load", "load_all", "safe_load_all", "unsafe_load"}
    for file in SOURCE.rglob("*.py"):
        if file.name == "yaml_text.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            found = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml"
            assert not (found and node.attr in readers), f"{file}:{node.lineno} reads YAML by rules of its own"
