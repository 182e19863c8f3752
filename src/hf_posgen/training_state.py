"""Saved states of a run: written beside and renamed, verified when read, the newest kept."""

import hashlib
import json
import shutil
import warnings
from pathlib import Path

CHECKSUMS = "checksums.json"


def state_name(step: int) -> str:
    return f"step-{step:06d}"


def publish(temporary: Path, final: Path) -> None:
    """Seal a folder with the checksums of its files and give it its name, at once."""
    sums = {str(p.relative_to(temporary)): _sha256(p) for p in sorted(temporary.rglob("*")) if p.is_file()}
    (temporary / CHECKSUMS).write_text(json.dumps(sums, indent=1))
    if final.exists():
        shutil.rmtree(final)
    temporary.rename(final)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault(folder: Path) -> str | None:
    """None for a whole state, else what is wrong with it."""
    try:
        sums = json.loads((folder / CHECKSUMS).read_text())
        for name, expected in sums.items():
            if not (folder / name).is_file():
                return f"{name} is missing"
            if _sha256(folder / name) != expected:
                return f"{name} is damaged"
    except (OSError, ValueError, AttributeError):
        return f"{CHECKSUMS} is missing or unreadable"
    return None


def newest_whole(states: Path) -> Path | None:
    """The newest state that is whole; a warning for each one passed over."""
    for folder in sorted(states.glob("step-*[0-9]"), reverse=True):
        reason = fault(folder)
        if reason is None:
            return folder
        warnings.warn(f"state {folder.name} is not used: {reason}", stacklevel=2)
    return None


def prune(states: Path, keep: int) -> None:
    """Delete all but the newest states, and what an interrupted save left behind."""
    for folder in sorted(states.glob("step-*[0-9]"))[:-keep]:
        shutil.rmtree(folder)
    for leftover in states.glob("*.partial"):
        shutil.rmtree(leftover, ignore_errors=True)
