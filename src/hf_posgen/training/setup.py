"""How a run begins: its folder, its model, and its learning rate."""

import contextlib
import math
import zlib
from pathlib import Path

import torch
import yaml

from ..common.files import write_text
from ..model.configuration_posgen import PosGenConfig
from ..model.modeling_posgen import PosGenForCausalLM
from ..run.build import RunConfig, identity, to_tree, vocabulary
from ..tasks import build_task

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Stopped(RuntimeError):
    """Training ended before its last step for a reason that the message names."""


class Terminated(Stopped):
    """SIGTERM came: the state is saved, and the same command goes on."""


def build_model(run: RunConfig) -> PosGenForCausalLM:
    """The model at its start. Each parameter's draw depends on the seed and its name alone, so that arms with the same
    seed share every weight whose shape they share."""
    task = build_task(run.task)
    torch.manual_seed(run.seed)
    model = PosGenForCausalLM(PosGenConfig(**run.model, **vocabulary(task)))
    for name, module in model.named_modules():
        torch.manual_seed(zlib.crc32(f"{run.seed} {name}".encode()))
        model._init_weights(module)
    return model


def learning_rate(train, step: int) -> float:
    """Of step 0, 1, ...: a function of the step alone, whatever the number of processes."""
    if step < train.warmup_steps:
        return train.learning_rate * (step + 1) / train.warmup_steps
    if train.schedule == "constant":
        return train.learning_rate
    share = (step - train.warmup_steps) / max(1, train.steps - train.warmup_steps)
    return train.learning_rate * 0.5 * (1 + math.cos(math.pi * share))


def claim_folder(run: RunConfig, out: Path) -> None:
    """Make the run folder, or check that it holds this very run. Raises `ValueError` otherwise."""
    out.mkdir(parents=True, exist_ok=True)
    file, tree = out / "run.yaml", to_tree(run)
    if file.is_file():
        there = yaml.safe_load(file.read_text())
        if identity(there) != identity(tree):
            raise ValueError(
                f"{out} holds a run with another configuration ({_difference(there, tree)}): choose another"
            )
    elif any(out.iterdir()):
        raise ValueError(f"{out} is not empty and holds no run: choose another folder")
    write_text(file, yaml.safe_dump(tree, sort_keys=False))


@contextlib.contextmanager
def locked(out: Path):
    """While one process trains here no other may. The lock ends with its holder, however that ends. Raises `ValueError`."""
    with (out / ".lock").open("a") as file:
        try:
            if fcntl:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"another process is training in {out}: wait for it, or choose another folder") from None
        yield


def _difference(there, here, path: str = "") -> str:
    """The first key that differs, with both values."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            if there.get(key) != here.get(key):
                return _difference(there.get(key), here.get(key), f"{path}{key}.")
    return f"{path.rstrip('.')} is {there!r} there and {here!r} here"
