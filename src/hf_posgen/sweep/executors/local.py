"""Trials over processes of this machine: one per GPU, else one per core, pinned; each takes many trials."""

import contextlib
import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import wait

from tqdm.auto import tqdm

from ...run.cost import seconds_for
from ..trial import Failure, Trial, last_lines
from .worker import Slot, log_file, work

BAR = "{desc} |{bar:28}| {percentage:3.0f} % [{elapsed} < {remaining}] {postfix}"


def run_locally(
    trials: list[Trial], *, workers: int | None = None, threads: int = 1, quiet: bool | None = None
) -> list[Failure]:
    """Run trials one seed after another, so that what an interrupted sweep leaves is paired; the costliest trials of a
    seed first.

    threads: cores for each worker (small models are slower on two). A trial that fails, or a worker that dies, doesn't stop
    the others; an interruption saves every run's state first. Raises `ValueError` for fewer than one worker or thread."""
    for name, value in (("workers", workers), ("threads", threads)):
        if value is not None and (type(value) is not int or value < 1):
            raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")
    if not trials:
        return []
    waiting = queue(trials)
    pool = [_Worker(slot) for slot in _slots(trials, workers, threads)[: len(trials)]]
    try:
        with (
            _sigterm_as_interrupt(),
            tqdm(total=100.0, disable=quiet, desc=f"{len(trials)} runs", bar_format=BAR) as bar,
        ):
            return _Dispatch(pool, waiting, bar, one_line_each=bar.disable and not quiet).run()
    finally:
        for worker in pool:
            worker.stop()


def queue(trials: list[Trial]) -> list[Trial]:
    """The order in which trials are taken, from the end: the lowest seed's first, and of a seed's the costliest."""
    return sorted(trials, key=lambda trial: (-trial.run.seed, seconds_for(trial.run)))


def _slots(trials: list[Trial], workers: int | None, threads: int) -> list[Slot]:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    gpus = [] if all(trial.run.train.cpu for trial in trials) else _gpus()
    out = []
    for i in range(workers or len(gpus) or max(1, len(cores) // threads)):
        own_cores = tuple(cores[(i * threads + k) % len(cores)] for k in range(min(threads, len(cores))))
        environment = {"OMP_NUM_THREADS": str(len(own_cores))}
        if gpus:
            environment["CUDA_VISIBLE_DEVICES"] = gpus[i % len(gpus)]
        out.append(Slot(own_cores, environment))
    return out


def _gpus() -> list[str]:
    """Names for CUDA_VISIBLE_DEVICES."""
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(i) for i in range(torch.cuda.device_count())]
    return names if torch.cuda.is_available() else []


class _Dispatch:
    """Hands trials to workers and listens to them. one_line_each: print a line for each trial that ends, where no bar can
    be shown."""

    def __init__(self, pool: list["_Worker"], waiting: list[Trial], bar: tqdm, one_line_each: bool):
        self.pool, self.waiting, self.bar, self.one_line_each, self.failures = pool, waiting, bar, one_line_each, []
        self.count, self.done = len(waiting), 0
        self.seconds = {trial.name: seconds_for(trial.run) for trial in waiting}
        self.reported = dict.fromkeys(self.seconds, 0.0)

    def run(self) -> list[Failure]:
        for worker in self.pool:
            worker.give(self.waiting.pop() if self.waiting else None)
        while busy := {worker.connection: worker for worker in self.pool if worker.trial}:
            for connection in wait(list(busy)):
                self._receive(busy[connection])
            self.bar.set_postfix_str(f"{self.done} of {self.count} runs done")
        return self.failures

    def _receive(self, worker: "_Worker") -> None:
        trial = worker.trial
        try:
            kind, content = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            kind, content = "failed", worker.how_it_died()
            worker.start()
        if kind == "share":
            self._progress(trial, content)
            return
        self._progress(trial, 1.0)
        self.done += 1
        if kind == "failed":
            self.failures.append(Failure(trial.name, content))
        if self.one_line_each:
            print(f"{self.done} of {self.count} runs: {trial.name} {kind}", file=sys.stderr, flush=True)
        worker.give(self.waiting.pop() if self.waiting else None)

    def _progress(self, trial: Trial, share: float) -> None:
        new = max(0.0, share - self.reported[trial.name])
        self.reported[trial.name] += new
        total = sum(self.seconds.values())
        self.bar.update(min(100.0 * new * self.seconds[trial.name] / total, self.bar.total - self.bar.n))


class _Worker:
    """A process that trains one trial after another."""

    def __init__(self, slot: Slot):
        self.slot, self.trial = slot, None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, its_end = context.Pipe()
        self.process = context.Process(target=work, args=(its_end, self.slot), daemon=True)
        with _environment(self.slot.environment):  # libraries read it when the process starts
            self.process.start()
        its_end.close()

    def give(self, trial: Trial | None) -> None:
        self.trial = trial
        if trial is not None:
            self.connection.send(trial)

    def how_it_died(self) -> str:
        self.process.join(5)
        code = self.process.exitcode
        why = (
            f"its process was killed by signal {-code}" if code and code < 0 else f"its process ended with code {code}"
        )
        log = log_file(self.trial)
        printed = last_lines(log.read_text(errors="replace", encoding="utf-8"), 2) if log.is_file() else ""
        return f"{printed}\n{why}".strip()

    def stop(self) -> None:
        """Let it save and leave: SIGTERM ends a run after its step."""
        self.connection.close()
        if self.process.is_alive() and self.trial is not None:
            self.process.terminate()
        self.process.join(60)
        if self.process.is_alive():
            self.process.kill()


@contextlib.contextmanager
def _sigterm_as_interrupt():
    """So that a scheduler's signal lets the workers save too."""

    def interrupt(*_):
        raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def _environment(changes: dict):
    before = {key: os.environ.get(key) for key in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})
