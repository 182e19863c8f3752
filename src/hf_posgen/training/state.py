"""Saved states of a run: written beside and renamed, verified when read, the newest kept.

state/step-000500/  accelerate/ (weights, optimizer, every process's generators)  model/ (a from_pretrained folder)
                    progress.json  checksums.json
"""

import hashlib
import json
import shutil
import warnings
from dataclasses import dataclass, field
from pathlib import Path

CHECKSUMS = "checksums.json"
PARTIAL = ".partial"


@dataclass
class Progress:
    """What a state holds beside weights, optimizer and generators. `log` is train.jsonl so far; `run` and `processes` say
    whose state it is."""

    run: str
    processes: int
    step: int = 0
    tokens_seen: int = 0
    seconds: float = 0.0
    first_loss: float | None = None
    best: float = -1.0
    validations_since_best: int = 0
    finished: bool = False
    log: list = field(default_factory=list)

    def write(self, folder: Path) -> None:
        (folder / "progress.json").write_text(json.dumps(vars(self)))

    def read(self, folder: Path) -> None:
        """Take over what a state holds. Raises `ValueError` where other processes shared the work."""
        saved = json.loads((folder / "progress.json").read_text())
        if saved["processes"] != self.processes:
            raise ValueError(
                f"this run goes on from {folder.name}, made by {saved['processes']} process(es), and there are "
                f"{self.processes} now: the data are divided by process, so start as many as before"
            )
        vars(self).update(saved)


def state_name(step: int) -> str:
    return f"step-{step:06d}"


def saved_states(states: Path) -> list[Path]:
    """The states' folders, oldest first, whole or not."""
    return sorted((folder for folder in states.glob("step-*") if step_of(folder) is not None), key=step_of)


def step_of(folder: Path) -> int | None:
    """The step in a state's name; None for another folder."""
    number = folder.name.removeprefix("step-")
    return int(number) if number.isdecimal() else None


def publish(temporary: Path, final: Path) -> None:
    """Seal a folder with the checksums of its files and give it its name, at once."""
    sums = {str(p.relative_to(temporary)): _sha256(p) for p in sorted(temporary.rglob("*")) if p.is_file()}
    (temporary / CHECKSUMS).write_text(json.dumps(sums, indent=1))
    if final.exists():
        old = final.with_name(f"{final.name}.old{PARTIAL}")
        shutil.rmtree(old, ignore_errors=True)
        final.rename(old)
    temporary.rename(final)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault(folder: Path, run: str | None = None) -> str | None:
    """None for a whole state (of this run, where one is named), else what is wrong with it."""
    try:
        sums = json.loads((folder / CHECKSUMS).read_text())
        for name, expected in sums.items():
            if not (folder / name).is_file():
                return f"{name} is missing"
            if _sha256(folder / name) != expected:
                return f"{name} is damaged"
        if run is not None and json.loads((folder / "progress.json").read_text())["run"] != run:
            return "it belongs to another run"
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return f"{CHECKSUMS} is missing or unreadable"
    return None


def newest_whole(states: Path, run: str | None = None) -> Path | None:
    """The newest state that is whole and of this run; a warning for each one passed over."""
    for folder in reversed(saved_states(states)):
        reason = fault(folder, run)
        if reason is None:
            return folder
        warnings.warn(f"state {folder.name} is not used: {reason}", stacklevel=2)
    return None


def prune(states: Path, keep: int, step: int) -> None:
    """Delete all but the newest `keep` states up to a step, and what an interrupted save left behind. Later ones were
    refused: they must not push a good one out."""
    for folder in [folder for folder in saved_states(states) if step_of(folder) <= step][:-keep]:
        folder.rename(folder.with_name(f"{folder.name}.old{PARTIAL}"))  # a name belongs to whole states alone
    for leftover in states.glob(f"*{PARTIAL}"):
        shutil.rmtree(leftover, ignore_errors=True)
