"""A run's checkpoints: states to go on from, the best model so far, and the model at the end."""

import shutil
from pathlib import Path

from accelerate import Accelerator

from ..common.quiet import without_bars
from ..run.build import RunConfig
from ..tasks import build_task, task_tokenizer
from .setup import Stopped
from .state import CHECKSUMS, PARTIAL, Progress, fault, newest_whole, prune, publish, state_name


class Checkpoints:
    """Everything under state/, and the weights at the top of the run folder. `uploads` gets each state's model."""

    def __init__(self, run: RunConfig, out: Path, accelerator: Accelerator, progress: Progress, uploads=None):
        self.run, self.out, self.accelerator, self.progress, self.uploads = run, out, accelerator, progress, uploads
        self.states, self.main = out / "state", accelerator.is_main_process
        self.tokenizer = task_tokenizer(build_task(run.task))

    def resume(self) -> None:
        """Go on from the newest good state, if there is one."""
        found = newest_whole(self.states, self.progress.run)
        if found is not None:
            self.progress.read(found)
            self.accelerator.load_state(str(found / "accelerate"))

    def last_good(self) -> str:
        good = newest_whole(self.states, self.progress.run)
        return f"the last good state is {good}" if good else "no state was saved before it"

    def save_state(self, model) -> None:
        """At an optimizer step, never inside an accumulation. All processes save their generators. Raises `Stopped` where
        it can't be written; earlier states stay as they are."""
        name = state_name(self.progress.step)
        partial, final = self.states / f"{name}{PARTIAL}", self.states / name
        try:
            if self.main:
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir(parents=True)
            self.accelerator.wait_for_everyone()
            self.accelerator.save_state(str(partial / "accelerate"))
            weights = self.accelerator.get_state_dict(model)  # gathered from all, where they are sharded
            if self.main:
                self._save_model(model, weights, partial / "model")
                self.progress.write(partial)
                publish(partial, final)
        except Exception as error:  # each library has an error of its own for a full disk
            shutil.rmtree(partial, ignore_errors=True)
            reason = " ".join(str(error).split())[:200]
            step = self.progress.step
            raise Stopped(f"the state of step {step} can't be saved ({reason}); {self.last_good()}") from error
        if self.main:
            prune(self.states, self.run.train.keep, self.progress.step)
            if self.uploads:
                self.uploads.checkpoint(final / "model", name)
        self.accelerator.wait_for_everyone()

    def save_best(self, model) -> None:
        weights = self.accelerator.get_state_dict(model)
        if self.main:
            partial = self.states / f"best{PARTIAL}"
            shutil.rmtree(partial, ignore_errors=True)
            self._save_model(model, weights, partial)
            publish(partial, self.states / "best")

    def _save_model(self, model, weights: dict, folder: Path) -> None:
        """A folder that `from_pretrained` opens anywhere: weights, config, code, tokenizer."""
        with without_bars():
            self.accelerator.unwrap_model(model).save_pretrained(folder, state_dict=weights)
        self.tokenizer.save_pretrained(folder)

    def publish_model(self) -> None:
        """The chosen weights at the top of the run folder, their file last: it says that training is over."""
        if self.main:
            source = self.states / state_name(self.progress.step) / "model"
            if self.run.train.select == "best":
                source = self.states / "best"
                if reason := fault(source):
                    raise Stopped(f"the best checkpoint can't be used ({reason}): delete {self.states} and train again")
            files = [file for file in source.iterdir() if file.name != CHECKSUMS]
            for file in sorted(files, key=lambda file: file.name == "model.safetensors"):
                beside = self.out / f".{file.name}{PARTIAL}"
                shutil.copy2(file, beside)
                beside.rename(self.out / file.name)
        self.accelerator.wait_for_everyone()
