"""A run's checkpoints: states to go on from, the best model so far, and the model at the end."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from accelerate import Accelerator

from ..common.quiet import without_bars
from ..run.build import RunConfig
from ..run.folder import WEIGHTS, RunFolder, partial, step_of
from ..run.saved_state import CHECKSUMS, PARTIAL, PROGRESS, commit, fault
from .setup import Stopped


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
        (folder / PROGRESS).write_text(json.dumps(vars(self)), encoding="utf-8")

    def read(self, folder: Path) -> None:
        """Take over what a state holds. Raises `ValueError` where other processes shared the work."""
        saved = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))
        if saved["processes"] != self.processes:
            raise ValueError(
                f"this run goes on from {folder.name}, made by {saved['processes']} process(es), and there are "
                f"{self.processes} now: the data are divided by process, so start as many as before"
            )
        vars(self).update(saved)


class Checkpoints:
    """Everything under state/, and the weights at the top of the run folder. `uploads` gets each state's model."""

    def __init__(self, run: RunConfig, folder: RunFolder, accelerator: Accelerator, progress: Progress, uploads=None):
        self.run, self.folder, self.accelerator, self.progress = run, folder, accelerator, progress
        self.uploads, self.main = uploads, accelerator.is_main_process
        self.tokenizer = run.built_task.build_tokenizer()

    def resume(self) -> None:
        """Go on from the newest good state, if there is one."""
        newest = self.folder.newest_whole(self.progress.run)
        if newest is not None:
            self.progress.read(newest)
            self.accelerator.load_state(str(newest / "accelerate"))

    def last_good(self) -> str:
        """Return the clause of an error that names the newest good state."""
        good = self.folder.newest_whole(self.progress.run)
        return f"the last good state is {good}" if good else "no state was saved before it"

    def save_state(self, model) -> None:
        """Save a state at an optimizer step, never inside an accumulation. All processes save their generators.
        Raises `Stopped` where it can't be written; earlier states stay as they are."""
        final = self.folder.state(self.progress.step)
        temporary = partial(final)
        try:
            if self.main:
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir(parents=True)
            self.accelerator.wait_for_everyone()
            self.accelerator.save_state(str(temporary / "accelerate"))
            weights = self.accelerator.get_state_dict(model)  # gathered from all, where they are sharded
            if self.main:
                self._save_model(model, weights, temporary / "model")
                self.progress.write(temporary)
                commit(temporary, final)
        except Exception as error:  # each library has an error of its own for a full disk
            shutil.rmtree(temporary, ignore_errors=True)
            reason = " ".join(str(error).split())[:200]
            step = self.progress.step
            raise Stopped(f"the state of step {step} can't be saved ({reason}); {self.last_good()}") from error
        if self.main:
            prune(self.folder, self.run.train.keep, self.progress.step)
            if self.uploads:
                self.uploads.checkpoint(final / "model", final.name)
        self.accelerator.wait_for_everyone()

    def save_best(self, model) -> None:
        """Keep these weights as the best in validation so far."""
        weights = self.accelerator.get_state_dict(model)
        if self.main:
            temporary = partial(self.folder.best)
            shutil.rmtree(temporary, ignore_errors=True)
            self._save_model(model, weights, temporary)
            commit(temporary, self.folder.best)

    def _save_model(self, model, weights: dict, folder: Path) -> None:
        """Write a folder that `from_pretrained` opens anywhere: weights, config, code, tokenizer."""
        with without_bars():
            self.accelerator.unwrap_model(model).save_pretrained(folder, state_dict=weights)
        self.tokenizer.save_pretrained(folder)

    def commit_model(self) -> None:
        """Copy the chosen weights to the top of the run folder, their file last: it says that training is over."""
        if self.main:
            source = self.folder.state(self.progress.step) / "model"
            if self.run.train.select == "best":
                source = self.folder.best
                if reason := fault(source):
                    raise Stopped(
                        f"the best checkpoint can't be used ({reason}): delete {self.folder.states} and train again"
                    )
            files = [file for file in source.iterdir() if file.name != CHECKSUMS]
            self.folder.results.unlink(missing_ok=True)  # of weights that were here before: they would pass for these
            for file in sorted(files, key=lambda file: file.name == WEIGHTS):
                beside = partial(self.folder.path / f".{file.name}")
                shutil.copy2(file, beside)
                beside.rename(self.folder.path / file.name)
        self.accelerator.wait_for_everyone()


def prune(folder: RunFolder, keep: int, step: int) -> None:
    """Delete all but the newest `keep` states up to a step, and what an interrupted save left behind. Later ones were
    refused: they must not push a good one out."""
    for state in [state for state in folder.saved_states() if step_of(state) <= step][:-keep]:
        state.rename(partial(state.with_name(f"{state.name}.old")))  # a name belongs to whole states alone
    for leftover in folder.states.glob(f"*{PARTIAL}"):
        shutil.rmtree(leftover, ignore_errors=True)
