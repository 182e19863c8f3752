"""Modules that a run imports first, so that an encoding defined outside the package is registered wherever the run goes."""

import hashlib
import importlib
import sys
from pathlib import Path


def import_modules(names: dict | list | tuple | str | None) -> dict[str, str]:
    """Import modules by name, as from the current folder; returns {name: eight hex digits of the file's content}.

    names: module names, or what an earlier call returned. Raises `ValueError` for a module that isn't there, fails,
    or has changed since.
    """
    names = [names] if isinstance(names, str) else names or {}
    if not isinstance(names, dict | list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"imports is {names!r}; it must be a list of module names")
    expected = names if isinstance(names, dict) else dict.fromkeys(names)
    digests = {name: _import(name) for name in expected}
    for name, digest in digests.items():
        if expected[name] not in (None, digest):
            raise ValueError(
                f"module {name!r} has changed since this run was made ({expected[name]} then, {digest} now): "
                "restore it, or train anew"
            )
    return digests


def _import(name: str) -> str:
    """Import one module; return the digest of its file."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0] and error.name != name:
            raise ValueError(f"module {name!r} can't be imported: {error}") from None
        raise ValueError(
            f"no module {name!r} to import: it must be installed, or be a file {name}.py in the current folder"
        ) from None
    except Exception as error:
        raise ValueError(f"module {name!r} can't be imported: {type(error).__name__}: {error}") from error
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes() if file else b"").hexdigest()[:8]
