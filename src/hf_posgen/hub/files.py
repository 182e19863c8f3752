"""What of a folder is published, and a copy of it that holds still."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from ..run.folder import ANALYSIS, FIGURES, LOG, REPORT, RESULTS, RUN, RunFolder, step_of
from ..run.model_files import WEIGHTS, model_files
from ..run.saved_state import fault
from ..tasks.dataset.manifest import MANIFEST, Manifest, read_manifest
from .cards import read_card
from .errors import TOKEN, PushError

logger = logging.getLogger(__name__)

Files = dict[str, Path | bytes]  # path in the repository → what to put there
Select = Callable[[Path], list[Path]]  # a folder → the files in it that are published

FIGURE_FILES = tuple(f"{FIGURES}/*.{kind}" for kind in ("png", "pdf", "svg"))
MEASURED = (RESULTS, ANALYSIS, REPORT, *FIGURE_FILES)  # what belongs to the weights of a run
RECORD = (RUN, LOG, *MEASURED)
STALE = (*WEIGHTS, *MEASURED)  # what an earlier push may have left of other weights
WITHOUT_TEXT = (".safetensors", ".parquet")
FREEZES = 3  # how often to copy a folder that changes meanwhile


def run_files(folder: Path) -> list[Path]:
    """Return what is published of a run folder: the model with its tokenizer, then what was done with them."""
    return model_files(folder) + sorted({path for one in RECORD for path in folder.glob(one) if path.is_file()})


def open_finished_run(folder: str | Path) -> RunFolder:
    """Return a run folder. Raises `ValueError` unless training there is over."""
    run = RunFolder(Path(folder))
    run.require_finished()
    return run


def read_export(folder: Path) -> dict[str, Manifest]:
    """Return {configuration: manifest} of an exported task, in the order of its card.

    Raises `ValueError` where there are none, and where data that a manifest lists are missing."""
    paths = sorted(folder.glob(f"*/{MANIFEST}"))
    if not paths or not (folder / "README.md").is_file():
        raise ValueError(f"{folder} is no exported task: it needs README.md and <configuration>/{MANIFEST}")
    manifests = {path.parent.name: read_manifest(path.read_text(encoding="utf-8"), str(path)) for path in paths}
    missing = [
        file["file"] for one in manifests.values() for file in one.files if not (folder / file["file"]).is_file()
    ]
    if missing:
        raise ValueError(f"{folder} is no whole export: there is no {missing[0]}")
    listed = read_card((folder / "README.md").read_bytes(), "dataset", f"{folder / 'README.md'}").by_config("configs")
    return {config: manifests[config] for config in dict.fromkeys([*listed, *manifests]) if config in manifests}


def metric_files(folder: Path) -> Files:
    """Return what is published of a metric's folder: all but what makes it a package here. Raises `ValueError` for another
    folder."""
    if not all((folder / name).is_file() for name in (f"{folder.name}.py", "README.md", "index.html")):
        raise ValueError(f"{folder} is no metric: it needs {folder.name}.py, README.md and index.html")
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_file() and path.name != "__init__.py"}


def whole_steps(run: RunFolder) -> list[int]:
    """Return the steps of the whole states of a run; one that is damaged is named in the log and left out."""
    steps = []
    for state in run.saved_states():
        reason = fault(state)
        if reason:
            logger.warning("state %s is not published: %s", state.name, reason)
        elif RunFolder(state / "model").weights.is_file():
            steps.append(step_of(state))
    return steps


def freeze(folder: Path, into: Path, select: Select) -> Path:
    """Copy what is published, so that an upload reads one state of the folder whatever is written there meanwhile.

    Copies, not hard links: a file that is overwritten in place would change under its link. Raises `PushError` where the
    folder doesn't hold still, and where a file holds what looks like an access token."""
    for _ in range(FREEZES):
        shutil.rmtree(into, ignore_errors=True)
        try:
            before = stamps(folder, select)
            for path in before:
                (into / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(folder / path, into / path)
            if before == stamps(folder, select):
                break
        except FileNotFoundError:
            continue
    else:
        raise PushError(f"{folder} is being written to: push it when it is finished")
    refuse_secrets(contents(into))
    return into


def freeze_state(model: Path, into: Path) -> Path:
    """Copy the model of a state, <run>/state/step-000500/model, with the run it belongs to. Raises `ValueError` where there
    is no such state."""
    run = RunFolder(model.absolute().parents[2])
    missing = [path for path in (RunFolder(model).weights, run.run_file) if not path.is_file()]
    if missing:
        raise ValueError(f"{model} is no state of a run: there is no {missing[0]}")
    freeze(model, into, model_files)
    shutil.copy2(run.run_file, into / RUN)
    refuse_secrets(contents(into))
    return into


def stamps(folder: Path, select: Select) -> dict[str, tuple[int, int, int]]:
    """Return {path: (inode, size, time of change)} of the files that are published."""
    stats = {path.relative_to(folder).as_posix(): path.stat() for path in select(folder)}
    return {path: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def contents(folder: Path) -> Files:
    """Return all files of a folder, by their path in it."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def refuse_secrets(files: Files, token: str | None = None) -> None:
    """Raise `PushError` where a file that would be published holds the token in use, or what looks like one."""
    for path, content in files.items():
        if path.endswith(WITHOUT_TEXT):
            continue
        text = (content if isinstance(content, bytes) else content.read_bytes()).decode(errors="replace")
        if TOKEN.search(text) or (token and token in text):
            raise PushError(f"{path} holds what looks like an access token: take it out first")
