"""A process that trains one trial after another, so that torch is imported once for many."""

import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from ..folder import SweepFolder
from ..trial import Trial, last_lines


@dataclass(frozen=True)
class Slot:
    """What one worker may use."""

    cores: tuple[int, ...]
    environment: dict = field(default_factory=dict)


def log_file(trial: Trial) -> Path:
    return SweepFolder(trial.parent).logs / f"{trial.name}.log"


def work(connection, slot: Slot) -> None:
    """Train trials as they come until the connection closes; what they print goes to their log files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop,
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and while a run trains, it saves first
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, slot.cores)
    import torch

    from ... import register_auto_classes

    register_auto_classes()
    torch.set_num_threads(len(slot.cores))
    while True:
        try:
            trial = connection.recv()
        except EOFError:
            return
        log_file(trial).parent.mkdir(parents=True, exist_ok=True)
        with log_file(trial).open("a", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        if not _train(trial, connection):
            return


def _train(trial: Trial, connection) -> bool:
    """Train one trial; return whether to take another."""
    from ...training.trainer import Terminated, train

    last = [time.monotonic()]

    def on_step(step: int) -> None:
        if time.monotonic() - last[0] > 0.5:
            last[0] = time.monotonic()
            connection.send(("share", step / trial.run.train.steps))

    try:
        train(trial.run, trial.folder, evaluate=trial.evaluate, on_step=on_step, quiet=True)
    except (Terminated, BrokenPipeError):
        return False
    except Exception as error:
        traceback.print_exc()
        sys.stderr.flush()
        text = "".join(traceback.format_exception(error))
        connection.send(("failed", last_lines(text)))
    else:
        connection.send(("done", None))
    return True
