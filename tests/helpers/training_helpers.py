"""Small runs that hold everything a resumed run could lose, and processes that can be killed."""

import multiprocessing
import os
import signal
import socket
import time
import warnings
from pathlib import Path

import torch
from safetensors.torch import load_file

from hf_posgen.common.files import read_rows
from hf_posgen.run.build import RunConfig, build_run, merge

# Accumulation, dropout, sampled positions, weight decay, a schedule; states at steps 5, 10 and the end.
RUN = {
    "model": {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "hidden_dropout": 0.1,
        "attention_dropout": 0.1,
        "initializer_range": 0.2,
        "position_encoding": "rope",
        "position_sampler": {"name": "shifted", "maximum": 8},
    },
    "task": {"name": "fixed_offset", "test_lengths": [17, 32]},
    "train": {
        "steps": 12,
        "batch_size": 8,
        "gradient_accumulation": 2,
        "warmup_steps": 3,
        "schedule": "cosine",
        "weight_decay": 0.1,
        "save_every": 5,
        "validate_every": 4,
        "log_every": 1,
        "validation_count": 8,
        "cpu": True,
        "trackers": [],
    },
    "evaluation": {"count": 16},
}

# Children fork from a server that has imported everything once: a fresh process in milliseconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["hf_posgen.training.trainer", "tests.helpers.training_helpers"])


def small_run(**changes) -> RunConfig:
    return build_run(merge(RUN, changes))


def curve(folder: Path) -> list[dict]:
    """train.jsonl without what a clock decides."""
    clock = {"seconds", "tokens_per_second", "peak_memory_bytes"}
    return [{k: v for k, v in line.items() if k not in clock} for line in read_rows(folder / "train.jsonl")]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def assert_same_run(one: Path, other: Path) -> None:
    """Bit-equal loss curve and final weights."""
    assert curve(one) == curve(other)
    mine, theirs = weights(one), weights(other)
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert torch.equal(mine[name], theirs[name]), name


def _child(run, out, rank, world, port, prepare):
    torch.set_num_threads(1)
    if world > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_PORT": str(port)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo", "ACCELERATE_USE_CPU": "true"}
    from hf_posgen.training.trainer import train

    warnings.simplefilter("ignore")
    train(run, out, evaluate=False, quiet=True, on_step=prepare(rank) if prepare else None)


def start(run: RunConfig, out: Path, world: int = 1, prepare=None) -> list:
    """Train in processes of their own; `prepare(rank)` makes the on_step callback there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [
        PROCESSES.Process(target=_child, args=(run, out, rank, world, port, prepare), daemon=True)
        for rank in range(world)
    ]
    for child in children:
        child.start()
    return children


def finish(children, timeout: float = 120) -> list[int]:
    """Exit codes."""
    for child in children:
        child.join(timeout)
        if child.is_alive():
            child.kill()
            raise AssertionError("a training process hangs")
    return [child.exitcode for child in children]


def kill_after(children, seconds: float) -> bool:
    """SIGKILL to all at a moment; False where they were done by then."""
    time.sleep(seconds)
    alive = [child for child in children if child.is_alive()]
    for child in alive:
        os.kill(child.pid, signal.SIGKILL)
    for child in children:
        child.join()
    return bool(alive)
