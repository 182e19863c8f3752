"""Training a run: `train(run, out)` leaves the run folder, and called again goes on where it stopped.

Data, schedule and learning rate are functions of (seed, step, process) alone, so a state holds the weights, the
optimizer, the random generators and a few counters, and a resumed run is bit-equal to a straight one.
"""

import os
from pathlib import Path

from accelerate import Accelerator
from accelerate.state import AcceleratorState

from .evaluation import save_evaluation
from .run_config import RunConfig
from .trainer import Trainer
from .training_log import tracker_names
from .training_setup import Stopped, Terminated, build_model, claim_folder, learning_rate

__all__ = ["Stopped", "Terminated", "Trainer", "build_model", "learning_rate", "train"]


def train(
    run: RunConfig,
    out: str | Path,
    *,
    evaluate: bool = True,
    on_step=None,
    quiet: bool | None = None,
    push: str | None = None,
) -> Path:
    """Train, validate, save and (unless told not to) evaluate; returns the run folder.

    on_step(step): called after every optimizer step. push: a repository on the Hub that gets every checkpoint in the
    background, as revisions, and the finished run at the end. Raises `Stopped` where the loss is no number or explodes,
    a state can't be saved, or SIGTERM came (the state is saved first); `ValueError` for a folder that holds another run.
    """
    out = Path(out)
    accelerator = _accelerator(run, out, tracker_names(run, quiet))
    if accelerator.is_main_process:
        claim_folder(run, out)
    accelerator.wait_for_everyone()
    uploads = _background_push(push) if push and accelerator.is_main_process else None
    try:
        if not (out / "model.safetensors").is_file():
            Trainer(run, out, accelerator, on_step, quiet, uploads).run_to_the_end()
        if evaluate and not (out / "results.jsonl").is_file():
            save_evaluation(out, processes=accelerator)
        accelerator.wait_for_everyone()
    finally:
        if uploads:
            uploads.wait()
    if uploads and evaluate:
        from .hub import push as push_run

        push_run(out, push)
    return out


def _accelerator(run: RunConfig, out: Path, trackers: list[str]) -> Accelerator:
    """Accelerate keeps device and precision for the whole process; another run in it may want others."""
    if "WORLD_SIZE" not in os.environ:
        AcceleratorState._reset_state(reset_partial_state=True)
    precision = run.train.precision
    return Accelerator(cpu=run.train.cpu, mixed_precision=precision, log_with=trackers or None, project_dir=out)


def _background_push(repo_id: str):
    from .hub import BackgroundPush

    return BackgroundPush(repo_id)
