"""What an executor is, and the wait that those share whose trials run elsewhere."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from tqdm.auto import tqdm

from ..trial import Failure, Trial


class Executor(Protocol):
    """A function that runs trials and returns what failed.

    It leaves each trial's run folder in `trial.folder`; `trial.done` says whether it is complete. A trial that fails
    doesn't stop the others. Keyword-only arguments are the executor's options (`--executor.KEY` on the command line); it
    raises `ValueError` before anything runs for options that can't be, or where a package or a token is missing.
    """

    def __call__(self, trials: list[Trial], *, quiet: bool | None = None, **options) -> list[Failure]: ...


def wait_for_jobs(
    jobs: dict[Trial, Any],
    ended: Callable[[Any], bool],
    describe: Callable[[Any], str],
    *,
    fetch: Callable[[Trial, Any], None] | None = None,
    every: float,
    quiet: bool | None,
) -> list[Failure]:
    """Wait until every job has ended, looking at each `every` seconds; return a failure for each trial that isn't done.

    ended(job): whether it runs no more. describe(job): how it ended, and its last lines. fetch(trial, job): brings the run
    folder of an ended job here, where the executor's machines don't write it themselves.
    """
    waiting, failures = dict(jobs), []
    with tqdm(total=len(jobs), disable=quiet, desc="jobs") as bar:
        while waiting:
            for trial, job in [(trial, job) for trial, job in waiting.items() if ended(job)]:
                del waiting[trial]
                bar.update()
                if fetch:
                    fetch(trial, job)
                if not trial.done:
                    failures.append(Failure(trial.name, describe(job)))
            time.sleep(every if waiting else 0)
    return failures
