"""Publishing checkpoints and the run while training goes on."""

import logging
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ..run.folder import step_of
from .errors import scrub
from .files import freeze, freeze_state, open_finished_run, run_files
from .publish import push_frozen, push_step
from .repo import Repo, connect, ensure_repo

logger = logging.getLogger(__name__)


class BackgroundPush:
    """Publish while training goes on: each call copies what it needs at once, and one thread sends the copies in order.

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
        step = step_of(revision)
        if step is None:
            raise ValueError(f"{revision!r} names no state; a state's name is like step-000500")
        self._submit(
            lambda into: freeze_state(Path(model_folder), into), lambda repo, frozen: push_step(repo, frozen, step)
        )

    def run(self, run_folder: str | Path) -> None:
        """Publish a finished run on main."""
        run = open_finished_run(run_folder)
        self._submit(
            lambda into: freeze(run.path, into, run_files),
            lambda repo, frozen: push_frozen(repo, frozen, "main", f"Add {run.name}"),
        )

    def wait(self) -> None:
        """Return when all uploads have ended. Raises the first error that any of them met."""
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
