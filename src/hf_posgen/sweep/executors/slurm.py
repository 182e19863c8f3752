"""Trials as jobs of a SLURM cluster, through submitit; the sweep's folder must lie on a disk that its nodes see."""

import sys

from ..trial import Failure, Trial, last_lines
from .base import wait_for_jobs


def run_on_slurm(
    trials: list[Trial],
    *,
    quiet: bool | None = None,
    cluster: str = "slurm",
    every: float = 10.0,
    **parameters,
) -> list[Failure]:
    """Submit one job per trial, each an ordinary launch, and wait for all.

    parameters: submitit's (timeout_min, gpus_per_node, slurm_partition, ...); a job that is preempted goes on when the
    sweep is started again. cluster: "local" runs the jobs as processes here. every: seconds between looks at the jobs.
    Raises `ValueError` without submitit."""
    if not trials:
        return []
    try:
        import submitit
    except ImportError:
        raise ValueError("the executor slurm needs submitit: pip install 'hf-posgen[slurm]'") from None
    for trial in trials:
        trial.write()
    executor = submitit.AutoExecutor(trials[0].parent / "slurm", cluster=cluster)
    executor.update_parameters(**({"name": "posgen"} | parameters))
    with executor.batch():
        # By this Python: a job's path need not hold the environment's commands.
        launch = [sys.executable, "-m", "accelerate.commands.launch"]
        commands = [[*launch, *trial.command()[2:]] for trial in trials]
        jobs = [executor.submit(submitit.helpers.CommandFunction(command)) for command in commands]
    waiting = dict(zip(trials, jobs, strict=True))
    return wait_for_jobs(waiting, lambda job: job.done(), _describe, every=every, quiet=quiet)


def _describe(job) -> str:
    lines = last_lines(job.stderr() or "") or last_lines(job.stdout() or "")
    return f"job {job.job_id} ended as {job.state}\n{lines}".strip()
