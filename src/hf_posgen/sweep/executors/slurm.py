"""Points as jobs of a SLURM cluster, through submitit; the sweep's folder must lie on a disk that its nodes see."""

import sys
import time

from tqdm.auto import tqdm

from ..trial import Failure, Point, last_lines


def run_on_slurm(
    points: list[Point],
    *,
    quiet: bool | None = None,
    cluster: str = "slurm",
    every: float = 10.0,
    **parameters,
) -> list[Failure]:
    """One job per point, each an ordinary launch; waits for all. `parameters` are submitit's (timeout_min,
    gpus_per_node, slurm_partition, ...); a job that is preempted goes on when the sweep is started again. cluster:
    "local" runs the jobs as processes here. Raises `ValueError` without submitit."""
    if not points:
        return []
    try:
        import submitit
    except ImportError:
        raise ValueError("the executor slurm needs submitit: pip install 'hf-posgen[slurm]'") from None
    for point in points:
        point.write()
    executor = submitit.AutoExecutor(points[0].parent / "slurm", cluster=cluster)
    executor.update_parameters(**({"name": "posgen"} | parameters))
    with executor.batch():
        # By this Python: a job's path need not hold the environment's commands.
        launch = [sys.executable, "-m", "accelerate.commands.launch"]
        commands = [[*launch, *point.command()[2:]] for point in points]
        jobs = [executor.submit(submitit.helpers.CommandFunction(command)) for command in commands]
    waiting, failures = dict(zip(points, jobs, strict=True)), []
    with tqdm(total=len(points), disable=quiet, desc="jobs") as bar:
        while waiting:
            for point, job in [(point, job) for point, job in waiting.items() if job.done()]:
                del waiting[point]
                bar.update()
                if not point.done:
                    failures.append(Failure(point.name, _last_words(job)))
            time.sleep(every if waiting else 0)
    return failures


def _last_words(job) -> str:
    said = last_lines(job.stderr() or "") or last_lines(job.stdout() or "")
    return f"job {job.job_id} ended as {job.state}\n{said}".strip()
