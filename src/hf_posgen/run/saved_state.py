"""Folders that are whole or not there: written beside, sealed with the checksums of their files, and renamed.

state/step-000500/  accelerate/ (weights, optimizer, every process's generators)  model/ (a from_pretrained folder)
                    progress.json  checksums.json
"""

import hashlib
import json
import shutil
from pathlib import Path

CHECKSUMS = "checksums.json"
PARTIAL = ".partial"
PROGRESS = "progress.json"


def commit(temporary: Path, final: Path) -> None:
    """Seal a folder with the checksums of its files and give it its name, at once."""
    sums = {str(p.relative_to(temporary)): sha256(p) for p in sorted(temporary.rglob("*")) if p.is_file()}
    (temporary / CHECKSUMS).write_text(json.dumps(sums, indent=1), encoding="utf-8")
    if final.exists():
        old = final.with_name(f"{final.name}.old{PARTIAL}")
        shutil.rmtree(old, ignore_errors=True)
        final.rename(old)
    temporary.rename(final)


def sha256(path: Path) -> str:
    """Return the hexadecimal digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault(folder: Path, run: str | None = None) -> str | None:
    """Return None for a whole state (of this run, where its hash is given), else what is wrong with it."""
    try:
        sums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        for name, expected in sums.items():
            if not (folder / name).is_file():
                return f"{name} is missing"
            if sha256(folder / name) != expected:
                return f"{name} is damaged"
        if run is not None and json.loads((folder / PROGRESS).read_text(encoding="utf-8"))["run"] != run:
            return "it belongs to another run"
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return f"{CHECKSUMS} is missing or unreadable"
    return None
