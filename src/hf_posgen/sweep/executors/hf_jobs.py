"""Trials as Hugging Face Jobs: each trains on the Hub's machines, pushes its run, and is fetched from there."""

import re
from dataclasses import dataclass

from ...common.yaml_text import dump_yaml
from ...run.build import to_tree
from ..trial import Failure, Trial, last_lines
from .base import wait_for_jobs

SCRIPT = (
    'pip install -q "$POSGEN_INSTALL" && printf %s "$POSGEN_RUN" > run.yaml && '
    "accelerate launch -m hf_posgen train run.yaml --out run --push {repo} --private"
)
ENDED = ("COMPLETED", "CANCELED", "ERROR", "DELETED")


@dataclass
class _Job:
    """A job on the Hub, the repository it pushes to, and the stage it was last seen in."""

    id: str
    repo: str
    stage: str = ""


def run_on_hf_jobs(
    trials: list[Trial],
    *,
    owner: str | None = None,
    quiet: bool | None = None,
    flavor: str = "cpu-basic",
    image: str = "python:3.12",
    install: str = "hf-posgen",
    timeout: str = "2h",
    every: float = 15.0,
    api=None,
) -> list[Failure]:
    """Start one job per trial; each pushes to the private repository owner/posgen-TRIAL, which is then downloaded into the
    trial's folder.

    flavor, image, timeout: as in `hf jobs run`. install: what pip installs there (a released version, or a git address).
    every: seconds between looks at the jobs. Raises `ValueError` without a token, or for trials that are not to be
    evaluated."""
    from huggingface_hub import HfApi, get_token, snapshot_download

    if not trials:
        return []
    api, token = api or HfApi(), get_token()
    if not token:
        raise ValueError("the executor hf-jobs needs a token: log in with `hf auth login` or set HF_TOKEN")
    if not all(trial.evaluate for trial in trials):
        raise ValueError("the executor hf-jobs can't select learning rates: choose them with another executor")
    owner = owner or api.whoami()["name"]
    jobs = {}
    for trial in trials:
        repo = repo_name(owner, trial)
        info = api.run_job(
            image=image,
            command=["bash", "-c", SCRIPT.format(repo=repo)],
            env={"POSGEN_RUN": dump_yaml(to_tree(trial.run)), "POSGEN_INSTALL": install},
            secrets={"HF_TOKEN": token},
            flavor=flavor,
            timeout=timeout,
        )
        jobs[trial] = _Job(info.id, repo)

    def ended(job: _Job) -> bool:
        job.stage = str(api.inspect_job(job_id=job.id).status.stage)
        return job.stage in ENDED

    def fetch(trial: Trial, job: _Job) -> None:
        if job.stage == "COMPLETED":
            snapshot_download(job.repo, local_dir=trial.folder, token=token, endpoint=api.endpoint)

    def describe(job: _Job) -> str:
        lines = last_lines("\n".join(api.fetch_job_logs(job_id=job.id, tail=3)))
        return f"job {job.id} ended as {job.stage}\n{lines}".strip()

    return wait_for_jobs(jobs, ended, describe, fetch=fetch, every=every, quiet=quiet)


def repo_name(owner: str, trial: Trial) -> str:
    """Return a name the Hub accepts: letters, digits, - _ . and at most 96 characters."""
    return f"{owner}/" + re.sub(r"[^\w.-]+|(?<=[-.])[-.]+", "-", f"posgen-{trial.name}")[:96].strip("-.")
