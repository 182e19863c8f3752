"""The variables that accelerate reads from the environment: which of them a run lets speak, and which it doesn't.

A run file alone decides what shapes weights: accumulation, precision, compilation, clipping, the device where it says
`cpu`.
A variable that says otherwise is named in a warning and not used. Variables that choose another way of training, which we
don't have, are refused. All others (devices, processes, FSDP) are accelerate's business. The run folder records every one
that is set.
"""

import contextlib
import json
import os
import warnings

from accelerate import Accelerator

from ..common.files import write_text
from ..run.folder import RunFolder
from ..run.schema import TrainConfig

PREFIXES = ("ACCELERATE_", "FSDP_", "MEGATRON_LM_", "PARALLELISM_CONFIG_", "DEEPSPEED_", "XLA_", "PJRT_")
PLAIN = ("USE_TORCH_XLA", "FORK_LAUNCHED", "OMP_NUM_THREADS", "PT_HPU_LAZY_MODE")
REFUSED = {
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "accelerate's tensor, context and sequence parallelism",
}
# What a run decides: {a variable, or the beginning of several: (the key of the run, the value that says nothing)}.
DECIDED = {
    "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": ("gradient_accumulation", "1"),
    "ACCELERATE_MIXED_PRECISION": ("precision", "no"),
    "ACCELERATE_DYNAMO_": ("compile", "no"),
    "ACCELERATE_GRADIENT_CLIPPING": ("clip", ""),
    "ACCELERATE_FP8_": ("precision", ""),
    "ACCELERATE_DOWNCAST_BF16": ("precision", "no"),
}
DEVICE = ("ACCELERATE_USE_CPU", "ACCELERATE_TORCH_DEVICE")  # decided by a run that says train.cpu: true
YES = ("1", "true", "yes", "on", "y", "t")


def variables() -> dict[str, str]:
    """Return those that are set, of all that accelerate reads."""
    return {key: os.environ[key] for key in sorted(os.environ) if key.startswith(PREFIXES) or key in PLAIN}


@contextlib.contextmanager
def run_decides(train: TrainConfig):
    """Hide from accelerate the variables that the run decides, with a warning for each that says otherwise.

    Raises `ValueError` for variables that choose another way of training."""
    for name, what in REFUSED.items():
        if os.environ.get(name, "").lower() in YES:
            raise ValueError(f"{name} is set, and a run can't be trained with {what}: unset it, or launch without it")
    hidden = {name: value for name, value in variables().items() if _key(name, train)}
    for name, value in hidden.items():
        key = _key(name, train)
        if value.lower() not in _neutral(name, train):
            warnings.warn(f"{name}={value} is not used: the run says train.{key} {getattr(train, key)}", stacklevel=2)
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


def _key(name: str, train: TrainConfig) -> str | None:
    """The key of the run that decides what a variable is about; None where the run says nothing of it."""
    if train.cpu and name in DEVICE:
        return "cpu"
    return next((key for beginning, (key, _) in DECIDED.items() if name.startswith(beginning)), None)


def _neutral(name: str, train: TrainConfig) -> tuple[str, ...]:
    """The values of a variable that say what the run says, or nothing: `accelerate launch` sets some by itself."""
    if name in DEVICE:
        return ("cpu", *YES)
    key, nothing = next(found for beginning, found in DECIDED.items() if name.startswith(beginning))
    values = ("", nothing, str(getattr(train, key)).lower())
    return (*values, "default", "false") if name.startswith("ACCELERATE_DYNAMO_") else values


def record(folder: RunFolder, accelerator: Accelerator, step: int) -> None:
    """Add to the run folder where and how training began, or went on: processes, device, precision, and all variables that
    accelerate reads."""
    file = folder.environment
    starts = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    starts.append(
        {
            "after_step": step,
            "processes": accelerator.num_processes,
            "distributed": accelerator.distributed_type.value,
            "device": str(accelerator.device),
            "precision": accelerator.mixed_precision,
            "variables": variables(),
        }
    )
    write_text(file, json.dumps(starts, indent=1) + "\n")
