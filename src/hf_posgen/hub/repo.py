"""One repository on the Hub: making it, its branches and pull requests, and one commit that can be repeated safely."""

import hashlib
import io
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import validate_repo_id

from .errors import PushError, diagnose, scrub
from .files import Files, refuse_secrets

logger = logging.getLogger(__name__)

ATTEMPTS = 5  # the waits between them: 1, 2, 4, 8 seconds, or what the Hub asks for

PULL = re.compile(r"refs/pr/([1-9]\d*)")
# What git refuses in the name of a branch, and what the Hub takes for something else: refs/..., a commit.
NO_BRANCH = re.compile(
    r"[\s~^:?*\[\\\x00-\x1f\x7f]|\.\.|@\{|//|/\.|^[-/.]|[/.]$|\.lock(/|$)|^(@|HEAD|refs(/.*)?|[0-9a-f]{40})$"
)


@dataclass(frozen=True)
class Repo:
    """A repository that a token may write to. kind: "model", "dataset" or "space"."""

    api: HfApi
    id: str
    kind: str
    user: str
    token: str = field(repr=False)

    @property
    def url(self) -> str:
        return f"{self.api.endpoint}/{'' if self.kind == 'model' else self.kind + 's/'}{self.id}"

    def call(self, action: Callable, *args, **kwargs):
        """Return `action(*args, **kwargs)`, tried again with growing waits while the trouble may pass. Raises `PushError`.

        It is raised outside the handler: nothing of the client's exception (it holds the request and its headers)
        hangs on to ours."""
        trouble = None
        for attempt in range(ATTEMPTS):
            if trouble:
                wait = 2.0 ** (attempt - 1) if trouble.wait is None else trouble.wait
                logger.warning("%s; trying again in %.0f s", scrub(trouble.sentence, self.token), wait)
                time.sleep(wait)
            try:
                return action(*args, **kwargs)
            except Exception as error:
                trouble = diagnose(error, self.id, self.api.endpoint)
                if trouble is None:
                    raise
            if not trouble.again:
                break
        raise PushError(scrub(trouble.sentence, self.token))


def connect(repo_id: str, kind: str, token: str | None, endpoint: str | None) -> Repo:
    """Return the repository after checking its name and the token; a name without owner gets the token's.

    Raises `ValueError` for a bad name, `PushError` for a token that is missing, not accepted or read-only, and for no
    network."""
    check_name(repo_id)
    endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
    token = token or get_token()
    if not token:
        raise PushError("no access token: log in with `hf auth login` or set HF_TOKEN to a token with write access")
    api = HfApi(endpoint=endpoint, token=token, library_name="hf_posgen")
    user = Repo(api, repo_id, kind, "", token).call(api.whoami)
    role = (user.get("auth") or {}).get("accessToken", {}).get("role")
    if role == "read":
        raise PushError(f"the access token of {user['name']} is read-only: publishing needs one with write access")
    full = repo_id if "/" in repo_id else f"{user['name']}/{repo_id}"
    return Repo(api, full, kind, user["name"], token)


def check_name(repo_id: str) -> None:
    """Raise `ValueError` for what can't be the name of a repository."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError:
        raise ValueError(
            f"{repo_id!r} can't be a repository: it must be name or owner/name, of letters, digits, '-', '_' and '.'"
        ) from None


def check_revision(revision: str | None, create_pr: bool = False) -> str | None:
    """Return the revision, or None for main.

    Raises `ValueError` for what can be neither a branch nor a pull request, and for two targets at once."""
    if revision is None:
        return None
    if create_pr:
        raise ValueError(f"a pull request is made to main: revision {revision!r} and create_pr exclude each other")
    if not revision or (NO_BRANCH.search(revision) and not PULL.fullmatch(revision)):
        raise ValueError(
            f"{revision!r} can't be a revision: it must be the name of a branch, such as next or my/branch, "
            "or an open pull request, refs/pr/<number>"
        )
    return None if revision == "main" else revision


def ensure_repo(repo: Repo, private: bool, create: bool = True) -> None:
    """Make the repository where there is none. Raises `PushError` where a public one exists and private was asked for."""

    def look():
        try:
            return repo.api.repo_info(repo.id, repo_type=repo.kind)
        except RepositoryNotFoundError:
            return None

    info = repo.call(look)
    if info is None and not create:
        raise PushError(f"there is no repository {repo.id} to open a pull request on")
    if info is None:  # without a wish, an organisation's own default decides who may see it
        sdk = {"space_sdk": "static"} if repo.kind == "space" else {}
        repo.call(repo.api.create_repo, repo.id, repo_type=repo.kind, private=private or None, exist_ok=True, **sdk)
        info = repo.call(look) if private else None  # somebody may have been faster
    if private and not info.private:
        raise PushError(
            f"{repo.id} exists and is public, but a private push was asked for: "
            "choose another name, or make it private in its settings first"
        )


def ensure_branch(repo: Repo, name: str, empty: bool = False) -> None:
    """Make a branch where there is none: from the head of main, or (empty) from the repository's first commit."""
    refs = repo.call(repo.api.list_repo_refs, repo.id, repo_type=repo.kind)
    if any(name == ref.name for ref in refs.branches):
        return
    start = None
    if empty:
        start = repo.call(repo.api.list_repo_commits, repo.id, repo_type=repo.kind)[-1].commit_id
    create = repo.api.create_branch
    repo.call(create, repo.id, branch=name, revision=start, repo_type=repo.kind, exist_ok=True)


def ensure_pull_request(repo: Repo, title: str) -> int:
    """Return the number of our unmerged pull request with this title, opened where there is none: a repeated push goes on
    with the same."""

    def find_or_open() -> int:
        pulls = repo.api.get_repo_discussions(repo.id, repo_type=repo.kind, discussion_type="pull_request")
        for pull in pulls:
            ours = pull.is_pull_request and pull.title == title and pull.author == repo.user
            if ours and pull.status in ("draft", "open"):
                return pull.num
        return repo.api.create_pull_request(repo.id, title, repo_type=repo.kind).num

    return repo.call(find_or_open)


def check_pull_request(repo: Repo, number: int) -> None:
    """Raise `PushError` unless the repository has a pull request of this number that takes commits."""

    def look():
        try:
            return repo.api.get_discussion_details(repo.id, number, repo_type=repo.kind)
        except HfHubHTTPError as error:
            if error.response.status_code == 404:
                return None
            raise

    pull = repo.call(look)
    if pull is None or not pull.is_pull_request:
        raise PushError(f"{repo.id} has no pull request {number}: create_pr opens one")
    if pull.status not in ("draft", "open"):
        raise PushError(f"pull request {number} of {repo.id} is {pull.status}: create_pr opens another")


def open_pull_request(repo: Repo, number: int) -> None:
    """Take a pull request that is still a draft out of it."""
    details = repo.call(repo.api.get_discussion_details, repo.id, number, repo_type=repo.kind)
    if details.status == "draft":
        repo.call(repo.api.change_discussion_status, repo.id, number, "open", repo_type=repo.kind)


@dataclass(frozen=True)
class Remote:
    """A revision of a repository as one commit of it is. files: {path: what the Hub keeps of it}."""

    repo: Repo
    head: str
    files: dict[str, RepoFile]
    cache: str

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None where there is no such file."""
        if path not in self.files:
            return None
        where = {"repo_type": self.repo.kind, "revision": self.head, "cache_dir": self.cache}
        return Path(self.repo.api.hf_hub_download(self.repo.id, path, **where)).read_bytes()


Merge = Callable[[Remote], dict[str, bytes | None]]  # what becomes of files that `sync` isn't given; None: it goes


def sync(repo: Repo, revision: str, files: Files, message: str, merge: Merge = lambda there: {}) -> None:
    """Bring a revision to hold `files` in one commit on top of its head; none where it holds them already.

    merge: for what others may have written to as well, and for what is to go.
    When the head has moved, or the answer got lost, everything is read and compared again: nothing is committed twice.
    Raises `PushError`, also where a file holds what looks like an access token.
    """
    refuse_secrets(files, repo.token)

    def attempt() -> None:
        with TemporaryDirectory() as cache:
            there = _look(repo, revision, cache)
            try:
                merged = merge(there)
            except ValueError as error:
                raise PushError(f"{repo.id}: {error}") from None
        refuse_secrets({path: content for path, content in merged.items() if content is not None}, repo.token)
        wanted = {path: content for path, content in merged.items() if content is not None} | files
        operations = [
            CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
            for path, content in wanted.items()
            if path not in there.files or not same(there.files[path], content)
        ]
        operations += [CommitOperationDelete(path) for path in merged if path not in wanted and path in there.files]
        if operations:
            where = {"repo_type": repo.kind, "revision": revision, "parent_commit": there.head}
            repo.api.create_commit(repo.id, operations, commit_message=message, **where)

    repo.call(attempt)


def _look(repo: Repo, revision: str, cache: str) -> Remote:
    head = repo.api.repo_info(repo.id, repo_type=repo.kind, revision=revision).sha
    tree = repo.api.list_repo_tree(repo.id, repo_type=repo.kind, revision=head, recursive=True)
    return Remote(repo, head, {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}, cache)


def same(there: RepoFile, content: Path | bytes) -> bool:
    """Return whether a file of the tree has this content, by the digest that the Hub keeps of it."""
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    if size != there.size:
        return False
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
        if there.lfs is not None:
            return hashlib.file_digest(file, "sha256").hexdigest() == there.lfs.sha256
        return hashlib.sha1(b"blob %d\0" % size + file.read()).hexdigest() == there.blob_id
