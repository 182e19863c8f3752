"""What training reports while it works: train.jsonl, a progress bar, and accelerate's trackers."""

import contextlib
import importlib.util
import io
import sys
import time

import torch
from accelerate import Accelerator
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
from tqdm.auto import tqdm

from ..common.files import finite, to_json, write_rows
from ..run.build import RunConfig, to_tree
from ..run.folder import RunFolder
from ..run.schema import choose
from .checkpoints import Progress

try:
    import resource
except ImportError:  # Windows
    resource = None


def tracker_names(run: RunConfig, quiet: bool | None) -> list[str]:
    """Return the trackers by name; "auto" is trackio where it is installed (it works offline), and nothing in quiet
    runs. Raises
    `ValueError` for one that accelerate doesn't know, or that isn't installed (accelerate would log to none)."""
    names = [name for name in run.train.trackers if name != "auto"]
    if "auto" in run.train.trackers and not quiet and importlib.util.find_spec("trackio"):
        names.append("trackio")
    if names:
        installed = [str(kind) for kind in get_available_trackers()]
        for name in names:
            choose("train.trackers", name, ("auto", *LOGGER_TYPE_TO_CLASS))
            if name not in installed:
                raise ValueError(f"train.trackers names {name!r}, which is not installed: pip install {name}")
    return names


class TrainingLog:
    """Writes each line to train.jsonl at once, and to the bar and the trackers."""

    def __init__(
        self, run: RunConfig, folder: RunFolder, progress: Progress, accelerator: Accelerator, quiet: bool | None
    ):
        self.run, self.path, self.progress, self.accelerator = run, folder.log_file, progress, accelerator
        self.main = accelerator.is_main_process
        self.trackers = bool(accelerator.log_with)
        self.started, self.seconds_before, self.tokens_before = time.monotonic(), progress.seconds, progress.tokens_seen
        if self.main:
            write_rows(self.path, progress.log)  # without the lines that were written after the state was saved
        if self.trackers:
            with contextlib.redirect_stdout(io.StringIO()):
                names = {"trackio": {"name": folder.name}, "wandb": {"name": folder.name}}
                accelerator.init_trackers("hf_posgen", config=_flat(to_tree(run)), init_kwargs=names)
        self.bar = tqdm(
            total=run.train.steps,
            initial=progress.step,
            desc=f"{run.arm} on {run.task['name']}",
            unit="step",
            disable=True if quiet or not self.main else None,  # None: quiet where stderr is no terminal
        )

    def step(self, loss: torch.Tensor, rate: float) -> None:
        """Log an optimizer step."""
        progress, train = self.progress, self.run.train
        self.bar.update()
        progress.seconds = self.seconds_before + time.monotonic() - self.started
        if progress.step % train.log_every and progress.step != train.steps:
            return
        speed = (progress.tokens_seen - self.tokens_before) / (time.monotonic() - self.started)
        line = {
            "step": progress.step,
            "loss": float(loss),
            "lr": rate,
            "tokens_seen": progress.tokens_seen,
            "seconds": round(progress.seconds, 2),
            "tokens_per_second": round(speed),
            "peak_memory_bytes": peak_memory(),
        }
        self.bar.set_postfix_str(f"loss {line['loss']:.3f}, {speed:,.0f} tokens/s")
        self._write(line)
        self._track({key: line[key] for key in ("loss", "lr", "tokens_seen", "tokens_per_second")})

    def validation(self, summary: dict) -> None:
        """Log the means of a validation."""
        self._write({"step": self.progress.step, "split": "validation"} | summary)
        self._track({f"validation/{key}": value for key, value in summary.items()})

    def _write(self, line: dict) -> None:
        self.progress.log.append(line)
        if self.main:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(to_json(finite(line)) + "\n")

    def _track(self, values: dict) -> None:
        if self.trackers:
            self.accelerator.log(values, step=self.progress.step)

    def close(self) -> None:
        self.bar.close()
        if self.trackers:
            with contextlib.redirect_stdout(io.StringIO()):
                self.accelerator.end_training()


def peak_memory() -> int | None:
    """Return bytes: the accelerator's where there is one, else this process's resident memory at its highest; None where
    the system doesn't say."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _flat(tree: dict, prefix: str = "") -> dict:
    """Return dotted keys with plain values, as every tracker takes them."""
    out = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = value if isinstance(value, int | float | str | bool) else str(value)
    return out
