"""What a saved state holds beside weights, optimizer and generators, and which states are kept."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from ..run.folder import RunFolder, partial, step_of
from ..run.saved_state import PARTIAL, PROGRESS


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
        (folder / PROGRESS).write_text(json.dumps(vars(self)))

    def read(self, folder: Path) -> None:
        """Take over what a state holds. Raises `ValueError` where other processes shared the work."""
        saved = json.loads((folder / PROGRESS).read_text())
        if saved["processes"] != self.processes:
            raise ValueError(
                f"this run goes on from {folder.name}, made by {saved['processes']} process(es), and there are "
                f"{self.processes} now: the data are divided by process, so start as many as before"
            )
        vars(self).update(saved)


def prune(folder: RunFolder, keep: int, step: int) -> None:
    """Delete all but the newest `keep` states up to a step, and what an interrupted save left behind. Later ones were
    refused: they must not push a good one out."""
    for state in [state for state in folder.saved_states() if step_of(state) <= step][:-keep]:
        state.rename(partial(state.with_name(f"{state.name}.old")))  # a name belongs to whole states alone
    for leftover in folder.states.glob(f"*{PARTIAL}"):
        shutil.rmtree(leftover, ignore_errors=True)
