"""Small files written whole or not at all."""

import json
import math
import os
import tempfile
from pathlib import Path


def require_folder(path: str | Path) -> None:
    """Raise `ValueError` where a folder can't be made, or nothing may be written into it: for a check before the work."""
    existing = Path(path).absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise ValueError(f"{path} can't be a folder: {existing} is a file; choose another place")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"{path} can't be written: you may not write into {existing}; choose another place")


def write_text(path: Path, text: str) -> None:
    """Write beside, then rename: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # as any new file; a temporary one is its owner's alone
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def to_json(value, indent: int | None = None) -> str:
    """Return a value as strict JSON. Raises `ValueError` for NaN and infinity, which JSON can't hold, by their place."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:
        raise ValueError(f"{_not_finite(value)}, which JSON can't hold; it must be a finite number or null") from None


def finite(value):
    """Return a value with None for every number in it that JSON can't hold."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _not_finite(value, where: str = "") -> str | None:
    """Return where in a value a number isn't finite, and what it is."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{where or 'the value'} is {value}"
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    found = (_not_finite(part, f"{where}.{key}" if where else str(key)) for key, part in parts)
    return next(filter(None, found), None)


def write_rows(path: Path, rows: list[dict]) -> None:
    """Write one JSON object per line. Raises `ValueError` for a number that JSON can't hold."""
    write_text(path, "".join(to_json(row) + "\n" for row in rows))


def read_rows(path: Path) -> list[dict]:
    """Return the rows of a JSON-lines file; none where there is no file. NaN and infinity, which older files hold, are
    read as None."""
    if not path.is_file():
        return []
    return [
        json.loads(line, parse_constant=lambda _: None)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
