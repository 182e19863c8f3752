"""Publishing a run folder: one commit with its parent named, from a frozen copy, safe to repeat."""

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi, ModelCard
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

from .card import card
from .files import read_rows
from .training_state import fault

# What travels. state/ stays at home.
PATTERNS = (
    "*.json",
    "*.jsonl",
    "*.py",
    "*.safetensors",
    "*.md",
    "run.yaml",
    "figures/*.png",
    "figures/*.pdf",
    ".eval_results/*.yaml",
)
TRIES, FIRST_WAIT = 5, 1.0  # seconds; doubled each time


class PushError(RuntimeError):
    """Why a push did not happen, in one sentence that holds no token."""


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
    """Publish a finished run folder as a model repository; returns the commit's address.

    Intermediate checkpoints in state/ become branches `step-000500`. Repeating it changes nothing where nothing changed.
    Raises `ValueError` for a folder that is no finished run, `PushError` for everything the Hub refuses.
    """
    folder = Path(run_folder)
    for needed in ("run.yaml", "model.safetensors", "results.jsonl"):
        if not (folder / needed).is_file():
            raise ValueError(f"{folder} is no finished run: it holds no {needed}")
    api = HfApi(endpoint=endpoint, token=token)
    with tempfile.TemporaryDirectory() as frozen:
        copy = Path(frozen) / "run"
        freeze(folder, copy, PATTERNS)
        with _plain_errors(repo_id):
            _ensure_repo(api, repo_id, "model", private)
            _ensure_branch(api, repo_id, "model", revision)

            def prepare() -> None:
                card(copy, repo_id, _published_results(api, repo_id, revision))

            url = commit(api, repo_id, "model", copy, message(folder), revision, create_pr, prepare)
            for state in sorted((folder / "state").glob("step-*[0-9]")):
                if fault(state) is None and not create_pr and revision is None:
                    _push_state(api, repo_id, state, Path(frozen))
    return url


def message(folder: Path) -> str:
    row = read_rows(folder / "results.jsonl")[0]
    return f"{row['arm']} on {row['task']}, seed {row['seed']}, step {row['step']}"


def _push_state(api: HfApi, repo_id: str, state: Path, frozen: Path) -> None:
    """One intermediate checkpoint as a branch of its own."""
    copy = frozen / state.name
    freeze(state / "model", copy, PATTERNS)
    _ensure_branch(api, repo_id, "model", state.name)
    commit(api, repo_id, "model", copy, f"Checkpoint {state.name}", state.name)


def push_dataset(
    folder: str | Path, repo_id: str, *, private: bool = False, token: str | None = None, endpoint: str | None = None
) -> str:
    """Publish an exported task folder as a data set repository; returns the commit's address."""
    folder = Path(folder)
    if not (folder / "README.md").is_file() or not list(folder.glob("*/*.parquet")):
        raise ValueError(f"{folder} is no exported task: it needs README.md and <config>/*.parquet (posgen data export)")
    api = HfApi(endpoint=endpoint, token=token)
    with _plain_errors(repo_id):
        _ensure_repo(api, repo_id, "dataset", private)
        return commit(api, repo_id, "dataset", folder, f"Task {folder.name}")


def freeze(source: Path, target: Path, patterns) -> None:
    """Copy what travels, so that nothing changes under an upload."""
    for pattern in patterns:
        for file in source.glob(pattern):
            if file.is_file() and not file.name.endswith(".partial"):
                place = target / file.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, place)


def commit(
    api: HfApi,
    repo_id: str,
    kind: str,
    folder: Path,
    text: str,
    revision: str | None = None,
    create_pr: bool = False,
    prepare: Callable[[], None] = lambda: None,
) -> str:
    """One commit of a folder's files on top of the head. `prepare` runs again whenever the head has moved."""
    wait = FIRST_WAIT
    for attempt in range(1, TRIES + 1):
        try:
            head = api.repo_info(repo_id, repo_type=kind, revision=revision).sha
            prepare()
            changed = [file for file in _files(folder) if not _same(api, repo_id, kind, head, folder, file)]
            if not changed:
                return f"{api.endpoint}/{'datasets/' if kind == 'dataset' else ''}{repo_id}/commit/{head}"
            operations = [CommitOperationAdd(str(file), str(folder / file)) for file in changed]
            info = api.create_commit(
                repo_id,
                operations,
                commit_message=text,
                repo_type=kind,
                revision=revision,
                create_pr=create_pr or None,
                parent_commit=head,
            )
            return info.commit_url
        except Exception as error:
            if attempt == TRIES or not _worth_another_try(error):
                raise
            time.sleep(wait)
            wait *= 2
    raise PushError(f"{repo_id}: gave up after {TRIES} tries")


def _worth_another_try(error: Exception) -> bool:
    """A moved head, too many requests, a server's fault, or a connection that broke."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return status in (409, 412, 429) or status >= 500
    return type(error).__module__.split(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2", "requests")


def _files(folder: Path) -> list[Path]:
    return sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file() and ".cache" not in p.parts)


def _same(api: HfApi, repo_id: str, kind: str, head: str, folder: Path, file: Path) -> bool:
    """Whether the head already holds this very file: by the digest that git or LFS would give it."""
    if not hasattr(api, "_known_trees"):
        api._known_trees = {}
    key = (repo_id, kind, head)
    if key not in api._known_trees:
        tree = api.list_repo_tree(repo_id, repo_type=kind, revision=head, recursive=True)
        api._known_trees[key] = {entry.path: entry for entry in tree if hasattr(entry, "blob_id")}
    entry = api._known_trees[key].get(file.as_posix())
    if entry is None:
        return False
    content = (folder / file).read_bytes()
    if entry.lfs is not None:
        return entry.lfs.sha256 == hashlib.sha256(content).hexdigest()
    return entry.blob_id == hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _ensure_repo(api: HfApi, repo_id: str, kind: str, private: bool) -> None:
    """Make the repository, or check that it is as private as asked."""
    try:
        info = api.repo_info(repo_id, repo_type=kind)
    except RepositoryNotFoundError:
        api.create_repo(repo_id, repo_type=kind, private=private or None, exist_ok=True)
        return
    if private and info.private is False:
        raise PushError(f"{repo_id} exists and is public, but private was asked: nothing was uploaded")


def _ensure_branch(api: HfApi, repo_id: str, kind: str, revision: str | None) -> None:
    if revision is None:
        return
    try:
        api.repo_info(repo_id, repo_type=kind, revision=revision)
    except RevisionNotFoundError:
        api.create_branch(repo_id, branch=revision, repo_type=kind, exist_ok=True)


def _published_results(api: HfApi, repo_id: str, revision: str | None) -> list:
    """The results on the card that is there now; none where there is no card."""
    try:
        path = api.hf_hub_download(repo_id, "README.md", revision=revision)
        return ModelCard.load(path).data.eval_results or []
    except Exception as error:
        if _worth_another_try(error):
            raise
        return []


class _plain_errors:
    """Turn what the Hub's client raises into one sentence without a token in it."""

    def __init__(self, repo_id: str):
        self.repo_id = repo_id

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, PushError | ValueError) and not isinstance(error, HfHubHTTPError):
            return False
        raise PushError(f"{self.repo_id}: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, LocalTokenNotFoundError):
        return "no token: log in with `hf auth login` or set HF_TOKEN"
    reasons = {
        401: "the token is missing or not valid: log in with `hf auth login` or set HF_TOKEN",
        403: "the token may not write there: use one with write access",
        404: "no such repository, or the token may not see it",
        412: "somebody else keeps committing there: try again",
        429: "the Hub asks for fewer requests: try again later",
    }
    if status in reasons:
        return reasons[status]
    if status is not None and status >= 500:
        return f"the Hub answered {status} again and again: try again later"
    if _worth_another_try(error):
        return "the Hub can't be reached: is there a network?"
    return f"{type(error).__name__} while publishing"


class BackgroundPush:
    """Uploads checkpoints while training goes on: each from a copy taken at once, one after the other.

    `wait()` returns when all are up and raises the first error.
    """

    def __init__(self, repo_id: str, **options):
        self.repo_id, self.options = repo_id, options
        self.pool = ThreadPoolExecutor(1)
        self.uploads: list[Future] = []

    def checkpoint(self, model_folder: Path, revision: str) -> None:
        copy = Path(tempfile.mkdtemp())
        freeze(Path(model_folder), copy / "model", PATTERNS)
        self.uploads.append(self.pool.submit(self._upload, copy, revision))

    def _upload(self, copy: Path, revision: str) -> str:
        api = HfApi(endpoint=self.options.get("endpoint"), token=self.options.get("token"))
        try:
            with _plain_errors(self.repo_id):
                _ensure_repo(api, self.repo_id, "model", self.options.get("private", False))
                _ensure_branch(api, self.repo_id, "model", revision)
                return commit(api, self.repo_id, "model", copy / "model", f"Checkpoint {revision}", revision)
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def wait(self) -> list[str]:
        self.pool.shutdown(wait=True)
        return [upload.result() for upload in self.uploads]
