"""What training needs beside its loop: the accelerator, the learning rate, and the ways it may end."""

import math
import os

from accelerate import Accelerator
from accelerate.state import AcceleratorState

from ..run.build import RunConfig
from ..run.folder import RunFolder
from .environment import run_decides


class Stopped(RuntimeError):
    """Training ended before its last step for a reason that the message names."""


class Terminated(Stopped):
    """SIGTERM came: the state is saved, and the same command goes on."""


def learning_rate(train, step: int) -> float:
    """Return the rate of step 0, 1, ...: a function of the step alone, whatever the number of processes."""
    if step < train.warmup_steps:
        return train.learning_rate * (step + 1) / train.warmup_steps
    if train.schedule == "constant":
        return train.learning_rate
    share = (step - train.warmup_steps) / max(1, train.steps - train.warmup_steps)
    return train.learning_rate * 0.5 * (1 + math.cos(math.pi * share))


def open_accelerator(run: RunConfig, folder: RunFolder, trackers: list[str]) -> Accelerator:
    """Return a fresh accelerator. Accelerate keeps device and precision for the whole process, where another run may have
    asked for others.

    Raises `ValueError` as `run_decides` does."""
    if "WORLD_SIZE" not in os.environ:
        AcceleratorState._reset_state(reset_partial_state=True)
    train = run.train
    with run_decides(train):
        return Accelerator(
            cpu=train.cpu, mixed_precision=train.precision, log_with=trackers or None, project_dir=folder.path
        )
