"""The folder of a run: the only place that spells the names of its files.

run.yaml  config.json  model.safetensors  tokenizer files      what a finished run is
train.jsonl  results.jsonl  analysis.json  evaluation.json      what was measured
README.md  report.md  report.html  figures/  .eval_results/     what is shown
state/step-000500/  state/best/  .lock                          what training goes on from
"""

import contextlib
import json
import warnings
from dataclasses import dataclass
from pathlib import Path

from ..common.files import read_rows, require_folder, write_text
from ..common.yaml_text import dump_yaml, read_yaml
from .build import build_run
from .saved_state import PARTIAL, fault
from .schema import RunConfig, identity, to_tree

RUN = "run.yaml"
MODEL_CONFIG = "config.json"
WEIGHTS = "model.safetensors"
LOG = "train.jsonl"
RESULTS = "results.jsonl"
ANALYSIS = "analysis.json"
EVALUATION = "evaluation.json"
ENVIRONMENT = "environment.json"
CARD = "README.md"
REPORT = "report.md"
PAGE = "report.html"
FIGURES = "figures"
HUB_RESULTS = ".eval_results"
STATES = "state"
BEST = "best"
LOCK = ".lock"
STEP = "step-"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@dataclass
class RunFolder:
    """A run's folder, which need not exist yet. Properties are the paths of its files."""

    path: Path

    def __post_init__(self):
        self.path = Path(self.path)

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def run_file(self) -> Path:
        return self.path / RUN

    @property
    def model_config(self) -> Path:
        return self.path / MODEL_CONFIG

    @property
    def weights(self) -> Path:
        return self.path / WEIGHTS

    @property
    def log_file(self) -> Path:
        return self.path / LOG

    @property
    def results(self) -> Path:
        return self.path / RESULTS

    @property
    def analysis(self) -> Path:
        return self.path / ANALYSIS

    @property
    def evaluation(self) -> Path:
        return self.path / EVALUATION

    @property
    def environment(self) -> Path:
        """Where and how training began, and went on."""
        return self.path / ENVIRONMENT

    @property
    def card(self) -> Path:
        return self.path / CARD

    @property
    def report(self) -> Path:
        return self.path / REPORT

    @property
    def page(self) -> Path:
        return self.path / PAGE

    @property
    def figures(self) -> Path:
        return self.path / FIGURES

    @property
    def hub_results(self) -> Path:
        return self.path / HUB_RESULTS

    @property
    def states(self) -> Path:
        return self.path / STATES

    @property
    def best(self) -> Path:
        """The model that was best in validation, where the run keeps that one."""
        return self.states / BEST

    @property
    def is_run(self) -> bool:
        return self.run_file.is_file()

    @property
    def is_finished(self) -> bool:
        """Whether training is over: the weights are the last file that it writes."""
        return self.is_run and self.model_config.is_file() and self.weights.is_file()

    def require_finished(self) -> None:
        """Raise `ValueError` that names what is missing, unless training here is over."""
        missing = [file.name for file in (self.run_file, self.model_config, self.weights) if not file.is_file()]
        if missing:
            raise ValueError(f"{self.path} is no finished run: it holds no {' and no '.join(missing)}")

    def config_tree(self) -> dict:
        """Return the run's configuration as nested dicts. Raises `ValueError` where there is none."""
        return read_yaml(self.run_file)

    def run(self) -> RunConfig:
        """Return the run. Raises `ValueError` where there is none."""
        return build_run(self.config_tree())

    def rows(self) -> list[dict]:
        """Return the rows of the evaluation; none before it."""
        return read_rows(self.results)

    def analysis_results(self) -> dict:
        """Return {analysis: its results}; none before it."""
        return json.loads(self.analysis.read_text(encoding="utf-8")) if self.analysis.is_file() else {}

    def log(self) -> list[dict]:
        """Return the lines of the training log; none before training."""
        return read_rows(self.log_file)

    def validations(self) -> list[dict]:
        """Return the validations of the training log, oldest first."""
        return [line for line in self.log() if line.get("split") == "validation"]

    def state(self, step: int) -> Path:
        """Return the folder of the state after a step."""
        return self.states / state_name(step)

    def saved_states(self) -> list[Path]:
        """Return the states' folders, oldest first, whole or not."""
        steps = {folder: step_of(folder) for folder in self.states.glob(f"{STEP}*")}
        return [folder for step, folder in sorted((step, folder) for folder, step in steps.items() if step is not None)]

    def newest_whole(self, run: str | None = None) -> Path | None:
        """Return the newest state that is whole and of this run, by its hash; warn of each one passed over."""
        for folder in reversed(self.saved_states()):
            reason = fault(folder, run)
            if reason is None:
                return folder
            warnings.warn(f"state {folder.name} is not used: {reason}", stacklevel=2)
        return None

    def claim(self, run: RunConfig) -> None:
        """Make the folder, or check that it holds this very run. Raises `ValueError` otherwise."""
        require_folder(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        tree = to_tree(run)
        if self.is_run:
            there, here = identity(self.config_tree()), identity(tree)
            if there != here:
                raise ValueError(
                    f"{self.path} holds a run with another configuration ({_difference(there, here)}): choose another"
                )
        elif any(self.path.iterdir()):
            raise ValueError(f"{self.path} is not empty and holds no run: choose another folder")
        write_text(self.run_file, dump_yaml(tree))

    @contextlib.contextmanager
    def locked(self):
        """Keep other processes from training here. The lock ends with its holder, however that ends. Raises `ValueError`
        where another process holds it."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise ValueError(
                f"another process is training in {self.path}: wait for it, or choose another folder"
            ) from None
        try:
            yield
        finally:
            lock.release()


def state_name(step: int) -> str:
    """Return the name of a state's folder, which is also its branch on the Hub: step-000500."""
    return f"{STEP}{step:06d}"


def step_of(folder: Path | str) -> int | None:
    """Return the step in a state's name; None for another folder."""
    name = Path(folder).name
    number = name.removeprefix(STEP)
    return int(number) if name.startswith(STEP) and number.isdecimal() else None


def partial(path: Path) -> Path:
    """Return where something is written before it gets its name."""
    return path.with_name(f"{path.name}{PARTIAL}")


def _difference(there, here, path: str = "") -> str:
    """The first key that differs, with both values."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            if there.get(key) != here.get(key):
                return _difference(there.get(key), here.get(key), f"{path}{key}.")
    return f"{path.rstrip('.')} is {there!r} there and {here!r} here"
