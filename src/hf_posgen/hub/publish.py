"""Publishing: a run folder as a model repository, its intermediate checkpoints as revisions, a task as a data set."""

import re
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

from ..card.model_card import digest, render
from ..run.folder import RunFolder, state_name
from ..tasks.dataset.manifest import MANIFEST
from ..tasks.dataset.published import benchmark, named
from .cards import read_card
from .files import (
    Files,
    contents,
    freeze,
    freeze_state,
    metric_files,
    open_finished_run,
    read_export,
    refuse_secrets,
    run_files,
    whole_steps,
)
from .merge_dataset_card import merge_dataset
from .merge_model_card import merge_model
from .repo import (
    PULL,
    Remote,
    Repo,
    check_pull_request,
    check_revision,
    connect,
    ensure_branch,
    ensure_pull_request,
    ensure_repo,
    open_pull_request,
    sync,
)

SHARD = re.compile(r"([^/]+)/\w+-\d{5}-of-\d{5}\.parquet")


def push(
    run_folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    create_pr: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Publish a run folder as a model repository; return its address.

    One commit on top of the head of main, or of `revision` (a branch, made from main where there is none, or an open pull
    request, refs/pr/3), or of a pull request of ours (`create_pr`). Onto main, the kept states of the run go too, as
    branches `step-000500`, each of which `from_pretrained(revision=...)` opens. The card is made here; results and metadata
    that others added are kept. A push that was interrupted is repeated by calling it again: what is there already is not
    sent or committed twice.

    private: make a new repository private. token: the machine's own unless given. endpoint: another Hub's address.
    Raises `ValueError` for a folder that is no run and a name that can't be, and `PushError`, which never holds a token,
    for everything else: no token, a wrong or read-only one, no network, a public repository where private was asked for.
    """
    revision = check_revision(revision, create_pr)
    run = open_finished_run(run_folder)
    with tempfile.TemporaryDirectory(prefix="hf_posgen-") as temporary:
        frozen = freeze(run.path, Path(temporary) / "run", run_files)
        repo, pull = connect(repo_id, "model", token, endpoint), PULL.fullmatch(revision or "")
        ensure_repo(repo, private, create=not (create_pr or pull))
        message = f"Add {run.name}"
        if create_pr:
            number = ensure_pull_request(repo, message)
            push_frozen(repo, frozen, f"refs/pr/{number}", message)
            open_pull_request(repo, number)
            return f"{repo.url}/discussions/{number}"
        if revision:
            check_pull_request(repo, int(pull[1])) if pull else ensure_branch(repo, revision)
            push_frozen(repo, frozen, revision, message)
            return f"{repo.url}/discussions/{pull[1]}" if pull else f"{repo.url}/tree/{quote(revision, safe='')}"
        steps = whole_steps(run)
        push_frozen(repo, frozen, "main", message, steps=steps)
        for step in steps:
            state = freeze_state(run.state(step) / "model", Path(temporary) / state_name(step))
            push_step(repo, state, step)
        return repo.url


def push_dataset(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Publish a folder written by `export_task` as a data set repository, with an `eval.yaml`; return its address.

    The configurations of the folder are replaced as a whole; others that are there, files of others, and what stands below
    our line of the card are kept. Raises as `push` does, and where our text of the card there was edited."""
    folder = Path(folder)
    manifests = read_export(folder)
    local = read_card((folder / "README.md").read_bytes(), "dataset", "the README.md here")
    refuse_secrets({"README.md": folder / "README.md"})
    repo = connect(repo_id, "dataset", token, endpoint)
    ensure_repo(repo, private)
    files: Files = {file["file"]: folder / file["file"] for manifest in manifests.values() for file in manifest.files}
    files |= {f"{config}/{MANIFEST}": folder / config / MANIFEST for config in manifests}

    def merge(there: Remote) -> dict[str, bytes | None]:
        shards = {path: match[1] for path in there.files if (match := SHARD.fullmatch(path))}
        stale = {path: None for path, config in shards.items() if config in manifests}
        return stale | merge_dataset(manifests, local, repo.id, there)

    sync(repo, "main", files, f"Add {repo.id.split('/')[1]}", merge)
    return repo.url


def push_metric(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Publish a metric's folder as a Space, which `evaluate.load(repo_id)` opens; return its address.

    Files of others are kept. Raises as `push` does."""
    files = metric_files(Path(folder))
    repo = connect(repo_id, "space", token, endpoint)
    ensure_repo(repo, private)
    for path in ("README.md", "index.html"):
        text = files[path].read_text(encoding="utf-8")
        files[path] = re.sub(rf"(<|&lt;)owner(>|&gt;)/{Path(folder).name}", repo.id, text).encode()
    sync(repo, "main", files, f"Add {Path(folder).name}")
    return repo.url


def push_frozen(
    repo: Repo, frozen: Path, revision: str, message: str, step: int | None = None, steps: Sequence[int] = ()
) -> None:
    """Bring a revision to hold a frozen copy and its card (`step`, `steps`: as for `render`)."""
    texts = render(frozen, repo.id, step, steps, linked(repo, frozen))
    sync(repo, revision, contents(frozen), message, partial(merge_model, texts, digest(RunFolder(frozen).weights)))


def linked(repo: Repo, frozen: Path) -> bool:
    """Return whether the data set of a run's task is on the Hub, where this token sees it."""
    task = RunFolder(frozen).config_tree()["task"]
    name = benchmark(task, repo.id.split("/")[0])[0]
    return named(task) and repo.call(repo.api.repo_exists, name, repo_type="dataset")


def push_step(repo: Repo, frozen: Path, step: int) -> None:
    """Publish a checkpoint as a branch of its own, begun at the first commit: it holds nothing of the final model."""
    ensure_branch(repo, state_name(step), empty=True)
    push_frozen(repo, frozen, state_name(step), f"Checkpoint after {step} steps", step)
