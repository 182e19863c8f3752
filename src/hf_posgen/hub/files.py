"""What travels to the Hub of a folder, and a copy of it that holds still."""

import logging
import re
import shutil
from pathlib import Path

from ..run.saved_state import fault
from ..tasks import SPLITS
from .errors import TOKEN, PushError

logger = logging.getLogger(__name__)

Files = dict[str, Path | bytes]  # path in the repository → what to put there

# What travels of a run folder: the model (all there is in an intermediate checkpoint), then what was done with it.
MODEL = (
    "config.json",
    "generation_config.json",
    "*.py",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
)
FIGURES = ("figures/*.png", "figures/*.pdf", "figures/*.svg")
RECORD = ("run.yaml", "train.jsonl", "results.jsonl", "analysis.json", "report.md", *FIGURES)
# What an earlier push may have left that belongs to other weights. Code is left alone: it may be somebody's own.
STALE = ("*.safetensors", "*.safetensors.index.json", "results.jsonl", "analysis.json", "report.md", *FIGURES)
NUMBERS = (".safetensors", ".parquet")  # files that hold no text
FREEZES = 3  # how often to copy a folder that changes meanwhile


def check_run(run_folder: str | Path) -> Path:
    """The folder, if it holds a finished run; else `ValueError`."""
    folder = Path(run_folder)
    missing = [name for name in ("run.yaml", "config.json", "model.safetensors") if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"{folder} is no finished run: it has no {' and no '.join(missing)}")
    return folder


def dataset_configs(folder: Path) -> dict[str, list[str]]:
    """{configuration: its splits} of an exported task, in the order of its card, the usual one of splits.

    Raises `ValueError` where there are none."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*/*.parquet")):
        splits = found.setdefault(path.parent.name, [])
        split = path.name.split("-")[0]
        if split not in splits:
            splits.append(split)
    if not found or not (folder / "README.md").is_file():
        raise ValueError(f"{folder} is no exported task: it needs README.md and <configuration>/<split>-*.parquet")
    listed = re.findall(r"^- config_name: (\S+)", (folder / "README.md").read_text(), re.M)
    order = dict.fromkeys([*(config for config in listed if config in found), *found])
    usual = lambda splits: sorted(splits, key=lambda one: SPLITS.index(one) if one in SPLITS else len(SPLITS))  # noqa: E731
    return {config: usual(found[config]) for config in order}


def metric_files(folder: Path) -> Files:
    """What travels of a metric's folder: all but what makes it a package here. `ValueError` for another folder."""
    if not all((folder / name).is_file() for name in (f"{folder.name}.py", "README.md", "index.html")):
        raise ValueError(f"{folder} is no metric: it needs {folder.name}.py, README.md and index.html")
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_file() and path.name != "__init__.py"}


def kept_steps(folder: Path) -> list[int]:
    """The steps of the whole states of a run; one that is damaged is named in the log and left out."""
    steps = []
    for state in sorted(folder.glob("state/step-*[0-9]")):
        reason = fault(state)
        if reason:
            logger.warning("state %s is not published: %s", state.name, reason)
        elif (state / "model" / "model.safetensors").is_file():
            steps.append(int(state.name.removeprefix("step-")))
    return steps


def freeze(folder: Path, into: Path, patterns: tuple[str, ...]) -> Path:
    """Copy what travels, so that an upload reads one state of the folder whatever is written there meanwhile.

    Copies, not hard links: a file that is overwritten in place would change under its link. Raises `PushError` where the
    folder doesn't hold still, and where a file holds what looks like an access token."""
    for _ in range(FREEZES):
        shutil.rmtree(into, ignore_errors=True)
        try:
            before = stamps(folder, patterns)
            for path in before:
                (into / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(folder / path, into / path)
            if before == stamps(folder, patterns):
                break
        except FileNotFoundError:
            continue
    else:
        raise PushError(f"{folder} is being written to: push it when it is finished")
    refuse_secrets(contents(into))
    return into


def stamps(folder: Path, patterns: tuple[str, ...]) -> dict[str, tuple[int, int, int]]:
    """{path: what changes with its content} of the files that travel."""
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    stats = {path.relative_to(folder).as_posix(): path.stat() for path in sorted(found)}
    return {path: (one.st_ino, one.st_size, one.st_mtime_ns) for path, one in stats.items()}


def contents(folder: Path) -> Files:
    """All files of a folder, by their path in it."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def refuse_secrets(files: Files, token: str | None = None) -> None:
    """`PushError` where a file that would be published holds the token in use, or what looks like one."""
    for path, content in files.items():
        if path.endswith(NUMBERS):
            continue
        text = (content if isinstance(content, bytes) else content.read_bytes()).decode(errors="replace")
        if TOKEN.search(text) or (token and token in text):
            raise PushError(f"{path} holds what looks like an access token: take it out first")


def freeze_state(model: Path, into: Path) -> Path:
    """Copy <run>/state/<step>/model, with the run.yaml it belongs to. Raises `ValueError` where there is no such state."""
    run = model.absolute().parents[2]
    missing = [path for path in (model / "model.safetensors", run / "run.yaml") if not path.is_file()]
    if missing:
        raise ValueError(f"{model} is no state of a run: there is no {missing[0]}")
    freeze(model, into, MODEL)
    shutil.copy2(run / "run.yaml", into / "run.yaml")
    refuse_secrets(contents(into))
    return into
