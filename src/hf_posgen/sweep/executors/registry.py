"""Who runs the points of a sweep. Each takes points and options of its own, and returns the failures."""

from .hf_jobs import run_on_hf_jobs
from .local import run_locally
from .slurm import run_on_slurm

EXECUTORS = {"local": run_locally, "slurm": run_on_slurm, "hf-jobs": run_on_hf_jobs}
