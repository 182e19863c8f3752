"""A checkpoint whose encoding comes from outside the package carries that encoding's file."""

import ast
import inspect
import sys
from pathlib import Path

from .encoding_registry import ENCODINGS

ALLOWED = {"torch", "transformers", "numpy", *sys.stdlib_module_names}


def carry_external(config, folder: str | Path) -> None:
    """Put the files of a third party's encodings into a saved checkpoint, and an encodings_external.py that imports them.

    Raises `ValueError` with the reason where a file can't travel.
    """
    specs = config.position_encoding if isinstance(config.position_encoding, list) else [config.position_encoding]
    foreign = {spec["name"]: ENCODINGS[spec["name"]] for spec in specs}
    home = inspect.getmodule(carry_external).__name__.rpartition(".")[0]
    foreign = {name: cls for name, cls in foreign.items() if cls.__module__.rpartition(".")[0] != home}
    if not foreign:
        return
    lines, entries = ['"""Encodings from outside the package that this checkpoint uses."""', ""], []
    for name, cls in foreign.items():
        stem = f"external_{cls.__module__.rpartition('.')[2].strip('_')}"
        (Path(folder) / f"{stem}.py").write_text(travelling_source(name, cls), encoding="utf-8")
        lines.append(f"from .{stem} import {cls.__name__}")
        entries.append(f'    "{name}": {cls.__name__},')
    text = [*lines, "", "EXTERNAL: dict[str, type] = {", *entries, "}", ""]
    (Path(folder) / "encodings_external.py").write_text("\n".join(text), encoding="utf-8")


def travelling_source(name: str, cls: type) -> str:
    """The file of a class with its imports of our package made relative and its calls of `register` left out."""
    try:
        source = Path(inspect.getsourcefile(cls)).read_text(encoding="utf-8")
    except (TypeError, OSError):
        source = None
    if source is None or cls.__module__ == "__main__":
        raise ValueError(
            f"encoding {name!r} can't travel with the checkpoint: put {cls.__name__} into a file of its own"
        )
    lines = source.splitlines()
    for node in ast.parse(source).body:
        replacement = _statement(name, node)
        if replacement is not None:
            lines[node.lineno - 1 : node.end_lineno] = [replacement] + [""] * (node.end_lineno - node.lineno)
    return "\n".join(lines) + "\n"


def _statement(name: str, node: ast.stmt) -> str | None:
    """What a top-level statement becomes; None where it stays as it is."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = ast.unparse(node.value.func)
        return "" if called.rpartition(".")[2] == "register" else None
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom):
        modules = [node.module or "."] if node.level == 0 else ["."]
    for module in modules:
        top, _, rest = module.partition(".")
        if top == "hf_posgen":
            return _relative(name, node, rest)
        if top not in ALLOWED:
            raise ValueError(
                f"encoding {name!r} can't travel with the checkpoint: its file imports {module!r}; "
                "a file that travels may import torch, transformers, numpy, the standard library and hf_posgen"
            )
    return None


def _relative(name: str, node: ast.stmt, rest: str) -> str:
    kept = [alias.name for alias in node.names if alias.name != "register"]
    if isinstance(node, ast.Import) or (rest and not rest.startswith("model.")) or not rest:
        if isinstance(node, ast.ImportFrom) and not rest and set(kept) <= {"PositionEncoding"}:
            return "from .position_encoding import PositionEncoding" if kept else ""
        if isinstance(node, ast.Import) and not rest:
            return ""  # `import hf_posgen`, for `hf_posgen.register`
        raise ValueError(
            f"encoding {name!r} can't travel with the checkpoint: it may import from hf_posgen only PositionEncoding, "
            "register and modules of hf_posgen.model"
        )
    return f"from .{rest.removeprefix('model.')} import {', '.join(kept)}" if kept else ""
