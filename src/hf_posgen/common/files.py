"""Small files written whole or not at all."""

import json
import os
import tempfile
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write beside, then rename: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # as any new file; a temporary one is its owner's alone
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_rows(path: Path, rows: list[dict]) -> None:
    """One JSON object per line."""
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def read_rows(path: Path) -> list[dict]:
    """The rows of a JSON-lines file; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.is_file() else []
