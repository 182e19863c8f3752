"""Lazy package faces: the names that a package offers are imported when they are first used, so that `--help` and reports
load neither torch nor transformers."""

import importlib
from collections.abc import Callable


def lazy_face(package: str, homes: dict[str, str]) -> tuple[Callable, list[str]]:
    """Return (`__getattr__`, `__all__`) for a package.

    package: its `__name__`. homes: {public name: module below the package that defines it}.
    """

    def __getattr__(name: str):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f".{homes[name]}", package), name)

    return __getattr__, sorted(homes)
