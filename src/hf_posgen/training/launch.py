"""Training a run: `train(run, out)` leaves the run folder, and called again goes on where it stopped.

Data, schedule and learning rate are functions of (seed, step, process) alone, so a state holds the weights, the
optimizer, the random generators and a few counters, and a resumed run is bit-equal to a straight one.
"""

import contextlib
import os
from pathlib import Path

from accelerate import Accelerator
from accelerate.state import AcceleratorState

from ..evaluation.runs import save_evaluation
from ..run.build import RunConfig, build_model
from ..run.folder import RunFolder
from ..run.imports import import_modules
from .log import tracker_names
from .setup import Stopped, Terminated, learning_rate
from .trainer import TrainingRun

__all__ = ["Stopped", "Terminated", "TrainingRun", "build_model", "learning_rate", "train"]


def train(
    run: RunConfig,
    out: str | Path,
    *,
    evaluate: bool = True,
    on_step=None,
    quiet: bool | None = None,
    push: str | None = None,
    private: bool = False,
) -> Path:
    """Train, validate, save and (unless told not to) evaluate; returns the run folder.

    on_step(step): called after every optimizer step. push: a repository on the Hub (private: if it is new) that gets
    every checkpoint in the background, as revisions, and the finished run at the end. Raises `Stopped` where the loss is
    no number or explodes, a state can't be saved, or SIGTERM came (the state is saved first); `ValueError` for a folder
    that holds another run.
    """
    folder = RunFolder(out)
    import_modules(run.imports)  # a worker process has not read the run
    accelerator = _accelerator(run, folder.path, tracker_names(run, quiet))
    main = accelerator.is_main_process
    if main:
        folder.claim(run)
    accelerator.wait_for_everyone()
    with folder.locked() if main else contextlib.nullcontext(), _uploads(push if main else None, private) as uploads:
        if not folder.is_finished:
            TrainingRun(run, folder, accelerator, on_step, quiet, uploads).run_to_the_end()
        if evaluate and not folder.results.is_file():
            save_evaluation(folder.path, processes=accelerator)
        accelerator.wait_for_everyone()
        if uploads and evaluate:
            uploads.run(folder.path)
    return folder.path


def _accelerator(run: RunConfig, out: Path, trackers: list[str]) -> Accelerator:
    """Accelerate keeps device and precision for the whole process; another run in it may want others."""
    if "WORLD_SIZE" not in os.environ:
        AcceleratorState._reset_state(reset_partial_state=True)
    precision = run.train.precision
    return Accelerator(cpu=run.train.cpu, mixed_precision=precision, log_with=trackers or None, project_dir=out)


def _uploads(repo_id: str | None, private: bool):
    """A context whose end waits for the uploads."""
    if repo_id is None:
        return contextlib.nullcontext()
    from ..hub.publish import BackgroundPush

    return BackgroundPush(repo_id, private=private)
