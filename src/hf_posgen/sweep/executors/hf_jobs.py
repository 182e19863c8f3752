"""Points as Hugging Face Jobs: each trains on the Hub's machines, pushes its run, and is fetched from there."""

import re
import time

import yaml
from tqdm.auto import tqdm

from ...run.build import to_tree
from ..trial import Failure, Point, last_lines

SCRIPT = (
    'pip install -q "$POSGEN_INSTALL" && printf %s "$POSGEN_RUN" > run.yaml && '
    "accelerate launch -m hf_posgen train run.yaml --out run --push {repo} --private"
)
ENDED = ("COMPLETED", "CANCELED", "ERROR", "DELETED")


def run_on_hf_jobs(
    points: list[Point],
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
    """One job per point; each pushes to the private repository owner/posgen-POINT, which is then downloaded into the
    point's folder. flavor, image, timeout: as in `hf jobs run`; install: what pip installs there (a released version, or
    a git address). Raises `ValueError` without a token, or for points that are not to be evaluated."""
    from huggingface_hub import HfApi, get_token, snapshot_download

    if not points:
        return []
    api, token = api or HfApi(), get_token()
    if not token:
        raise ValueError("the executor hf-jobs needs a token: log in with `hf auth login` or set HF_TOKEN")
    if not all(point.evaluate for point in points):
        raise ValueError("the executor hf-jobs can't select learning rates: choose them with another executor")
    owner = owner or api.whoami()["name"]
    jobs = {}
    for point in points:
        repo = repo_name(owner, point)
        info = api.run_job(
            image=image,
            command=["bash", "-c", SCRIPT.format(repo=repo)],
            env={"POSGEN_RUN": yaml.safe_dump(to_tree(point.run), sort_keys=False), "POSGEN_INSTALL": install},
            secrets={"HF_TOKEN": token},
            flavor=flavor,
            timeout=timeout,
        )
        jobs[point] = (info.id, repo)
    failures = []
    with tqdm(total=len(points), disable=quiet, desc="jobs") as bar:
        while jobs:
            for point, (job, repo) in list(jobs.items()):
                stage = api.inspect_job(job_id=job).status.stage
                if stage not in ENDED:
                    continue
                del jobs[point]
                bar.update()
                if stage == "COMPLETED":
                    snapshot_download(repo, local_dir=point.folder, token=token, endpoint=api.endpoint)
                if not point.done:
                    said = last_lines("\n".join(api.fetch_job_logs(job_id=job, tail=3)))
                    failures.append(Failure(point.name, f"job {job} ended as {str(stage)}\n{said}".strip()))
            time.sleep(every if jobs else 0)
    return failures


def repo_name(owner: str, point: Point) -> str:
    """A name the Hub accepts: letters, digits, - _ . and at most 96 characters."""
    return f"{owner}/" + re.sub(r"[^\w.-]+|(?<=[-.])[-.]+", "-", f"posgen-{point.name}")[:96].strip("-.")
