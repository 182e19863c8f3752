"""A process that trains one point after another, so that torch is imported once for many."""

import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from ..trial import Point, last_lines


@dataclass(frozen=True)
class Slot:
    """What one worker may use."""

    cores: tuple[int, ...]
    environment: dict = field(default_factory=dict)


def log_file(point: Point) -> Path:
    return point.parent / "logs" / f"{point.name}.log"


def work(connection, slot: Slot) -> None:
    """A worker's life: what points print goes to their log files."""
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
            point = connection.recv()
        except EOFError:
            return
        log_file(point).parent.mkdir(parents=True, exist_ok=True)
        with log_file(point).open("a") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        if not _one(point, connection):
            return


def _one(point: Point, connection) -> bool:
    """Train one point; whether to take another."""
    from ...training.launch import Terminated, train

    last = [time.monotonic()]

    def on_step(step: int) -> None:
        if time.monotonic() - last[0] > 0.5:
            last[0] = time.monotonic()
            connection.send(("share", step / point.run.train.steps))

    try:
        train(point.run, point.folder, evaluate=point.evaluate, on_step=on_step, quiet=True)
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
