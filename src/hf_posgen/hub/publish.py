"""Publishing: a run folder as a model repository, its intermediate checkpoints as revisions, a task as a data set."""

import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from ..card.metadata import benchmark, benchmark_file, named
from ..card.model_card import digest, render
from ..run.build import read_yaml
from ..run.folder import state_name
from .errors import PushError, scrub
from .files import (
    MODEL,
    RECORD,
    STALE,
    Files,
    check_run,
    contents,
    dataset_configs,
    freeze,
    freeze_state,
    kept_steps,
    metric_files,
)
from .merge_dataset_card import SHARD, merge_benchmark, merge_dataset_card, seal
from .merge_model_card import merge_card, merge_entries
from .repo import (
    PULL,
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

__all__ = ["BackgroundPush", "PushError", "push", "push_dataset", "push_metric"]

logger = logging.getLogger(__name__)


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
    """Publish a run folder as a model repository; returns its address.

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
    folder = check_run(run_folder)
    with tempfile.TemporaryDirectory(prefix="hf_posgen-") as temporary:
        frozen = freeze(folder, Path(temporary) / "run", MODEL + RECORD)
        repo, pull = connect(repo_id, "model", token, endpoint), PULL.fullmatch(revision or "")
        ensure_repo(repo, private, create=not (create_pr or pull))
        message = f"Add {folder.name}"
        if create_pr:
            number = ensure_pull_request(repo, message)
            push_frozen(repo, frozen, f"refs/pr/{number}", message)
            open_pull_request(repo, number)
            return f"{repo.url}/discussions/{number}"
        if revision:
            check_pull_request(repo, int(pull[1])) if pull else ensure_branch(repo, revision)
            push_frozen(repo, frozen, revision, message)
            return f"{repo.url}/discussions/{pull[1]}" if pull else f"{repo.url}/tree/{revision}"
        steps = kept_steps(folder)
        push_frozen(repo, frozen, "main", message, steps=steps)
        for step in steps:
            state = freeze_state(folder / "state" / state_name(step) / "model", Path(temporary) / state_name(step))
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
    """Publish a folder written by `export_task` as a data set repository, with an `eval.yaml`; returns its address.

    The configurations of the folder are replaced as a whole; others that are there, files of others, and what stands below
    our line of the card are kept. Raises as `push` does, and where our text of the card there was edited."""
    folder = Path(folder)
    configs = dataset_configs(folder)
    repo = connect(repo_id, "dataset", token, endpoint)
    ensure_repo(repo, private)
    name = repo.id.split("/")[1]
    card = seal(re.sub(r"<owner>/posgen-[\w-]+", repo.id, (folder / "README.md").read_text()))
    files: Files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.glob("*/*.parquet"))}
    files |= {"README.md": card.encode(), "eval.yaml": benchmark_file(name, configs).encode()}
    stale = lambda path: (shard := SHARD.fullmatch(path)) is not None and shard[1] in configs  # noqa: E731
    merge = {"README.md": merge_dataset_card, "eval.yaml": merge_benchmark}
    sync(repo, "main", files, f"Add {name}", merge, stale)
    return repo.url


def push_metric(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Publish a metric's folder as a Space, which `evaluate.load(repo_id)` opens; returns its address.

    Files of others are kept. Raises as `push` does."""
    files = metric_files(Path(folder))
    repo = connect(repo_id, "space", token, endpoint)
    ensure_repo(repo, private)
    for path in ("README.md", "index.html"):
        named = re.sub(rf"(<|&lt;)owner(>|&gt;)/{Path(folder).name}", repo.id, files[path].read_text())
        files[path] = named.encode()
    sync(repo, "main", files, f"Add {Path(folder).name}")
    return repo.url


def push_frozen(
    repo: Repo, frozen: Path, revision: str, message: str, step: int | None = None, steps: Sequence[int] = ()
) -> None:
    """Bring a revision to hold a frozen copy and its card (`step`, `steps`: as for `render`)."""
    texts = {path: text.encode() for path, text in render(frozen, repo.id, step, steps, linked(repo, frozen)).items()}
    weights = digest(frozen / "model.safetensors")
    merge = {"README.md": merge_card, ".eval_results/*.yaml": partial(merge_entries, weights=weights)}
    stale = lambda path: any(fnmatchcase(path, one) for one in STALE)  # noqa: E731
    sync(repo, revision, contents(frozen) | texts, message, merge, stale)


def linked(repo: Repo, frozen: Path) -> bool:
    """Whether the data set of a run's task is on the Hub, where this token sees it."""
    task = read_yaml(frozen / "run.yaml")["task"]
    name = benchmark(task, repo.id.split("/")[0])[0]
    return named(task) and repo.call(repo.api.repo_exists, name, repo_type="dataset")


def push_step(repo: Repo, frozen: Path, step: int) -> None:
    """A checkpoint as its own branch, begun at the repository's first commit: it holds nothing of the final model."""
    ensure_branch(repo, state_name(step), empty=True)
    push_frozen(repo, frozen, state_name(step), f"Checkpoint after {step} steps", step)


class BackgroundPush:
    """Publishes while training goes on: each call copies what it needs at once, and one thread sends the copies in order.

        with BackgroundPush("owner/name", private=True) as background:
            background.checkpoint(out / "state" / "step-000500" / "model", "step-000500")
            background.run(out)

    What can be known at once is an error at once, as `push` raises it: no or a wrong token, no network, a public repository
    where private was asked for. The repository is made then. `wait` (and leaving the `with`) returns when everything is
    there, and raises the first error; until then errors are logged, and later uploads still tried. The interpreter doesn't
    exit before the uploads end.
    """

    def __init__(self, repo_id: str, *, private: bool = False, token: str | None = None, endpoint: str | None = None):
        self.repo = connect(repo_id, "model", token, endpoint)
        ensure_repo(self.repo, private)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hf_posgen-push")
        self._uploads: list[Future] = []

    def checkpoint(self, model_folder: str | Path, revision: str) -> None:
        """Publish the model of a state, <run>/state/step-000500/model, as the branch `step-000500`."""
        if not re.fullmatch(r"step-\d+", revision):
            raise ValueError(f"{revision!r} names no state; a state's name is like step-000500")
        step = int(revision.removeprefix("step-"))
        self._submit(
            lambda into: freeze_state(Path(model_folder), into), lambda repo, frozen: push_step(repo, frozen, step)
        )

    def run(self, run_folder: str | Path) -> None:
        """Publish a finished run on main."""
        folder, patterns = check_run(run_folder), MODEL + RECORD
        self._submit(
            lambda into: freeze(folder, into, patterns),
            lambda repo, frozen: push_frozen(repo, frozen, "main", f"Add {folder.name}"),
        )

    def wait(self) -> None:
        """Until all uploads have ended. Raises the first error that any of them met."""
        uploads, self._uploads = self._uploads, []
        errors = [error for error in (upload.exception() for upload in uploads) if error]
        if errors:
            raise errors[0]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.wait()
        self._pool.shutdown(wait=True)

    def _submit(self, copy: Callable[[Path], Path], send: Callable[[Repo, Path], None]) -> None:
        temporary = Path(tempfile.mkdtemp(prefix="hf_posgen-"))
        try:
            frozen = copy(temporary / Path(self.repo.id).name)
            self._uploads.append(self._pool.submit(self._upload, temporary, frozen, send))
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def _upload(self, temporary: Path, frozen: Path, send: Callable[[Repo, Path], None]) -> None:
        try:
            send(self.repo, frozen)
        except Exception as error:
            logger.warning("%s was not published: %s", self.repo.id, scrub(str(error), self.repo.token))
            raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
