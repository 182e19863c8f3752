"""Executors by name. Each is a function with the signature of `Executor`."""

from ...common.names import unknown
from .base import Executor
from .hf_jobs import run_on_hf_jobs
from .local import run_locally
from .slurm import run_on_slurm

EXECUTORS: dict[str, Executor] = {"local": run_locally, "slurm": run_on_slurm, "hf-jobs": run_on_hf_jobs}


def known_executor(name: str) -> Executor:
    """Return an executor by name. Raises `ValueError` for an unknown one."""
    if name not in EXECUTORS:
        raise unknown("executor", name, EXECUTORS)
    return EXECUTORS[name]
