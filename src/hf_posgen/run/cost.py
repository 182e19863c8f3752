"""What a run costs: floating-point operations, and guesses at seconds and bytes."""

import json
from functools import cache

from .build import RunConfig, model_without_data, vocabulary


def forward_flops(model: dict, vocab_size: int, length: int) -> float:
    """Return those of one sequence: two for each weight and token, four for each channel of a query that meets a key
    (causal); in a mixer with a state it meets as many as its head has channels."""
    width, inner = model["hidden_size"], model["num_attention_heads"] * model["head_dim"]
    keys = model["num_key_value_heads"] * model["head_dim"]
    projections = {"none": 0, "plain": 2, "gated": 3}[model["mlp"]] * width * model["intermediate_size"]
    weights = 2 * width * (inner + keys) + projections
    mixers = model["mixer"] if isinstance(model["mixer"], list) else [model["mixer"]] * model["num_hidden_layers"]
    keys_met = {True: length * (length + 1) / 2, False: length * model["head_dim"]}
    layers = sum(2 * weights * length + 4 * inner * keys_met[mixer["name"] == "softmax"] for mixer in mixers)
    return layers + 2 * width * vocab_size * length


def training_flops(run: RunConfig, tokens_seen: int) -> float:
    """Return those of forward and twice as much backward, for so many tokens at the mean trained length."""
    task = run.built_task
    lengths = [cell.length + task.slots() for cell in task.cells("train")]
    each = sum(forward_flops(run.model, task.vocab_size, length) for length in lengths)
    return 3 * each * tokens_seen / sum(lengths)


def operations(run: RunConfig) -> float:
    """Return those of training and evaluation together."""
    task, train = run.built_task, run.train
    lengths = [cell.length + task.slots() for cell in task.cells("train")]
    tokens = train.steps * train.gradient_accumulation * train.batch_size * sum(lengths) / len(lengths)
    cells = [cell for split in run.evaluation.splits for cell in task.splits().get(split) or ()]
    evaluated = sum(forward_flops(run.model, task.vocab_size, cell.length + task.slots()) for cell in cells)
    return training_flops(run, tokens) + run.evaluation.count * evaluated


CORE = 6e10  # operations per second of a CPU core
GPU = 5e13  # assumed, not measured: a sixth of an A100's peak in bf16
LAUNCHES = (
    5e-4  # assumed too: seconds that a step waits for a GPU's kernels to start, per layer; what a small model costs
)


def seconds_for(run: RunConfig) -> float:
    """Return a rough guess for one CPU core, to order the trials of a sweep and to estimate the time left: a fixed
    cost for each step and layer, and the operations."""
    return _in_steps(run, 0.003) + operations(run) / CORE


def _in_steps(run: RunConfig, each: float) -> float:
    """Return what steps cost however small the model is, in seconds: `each` of a layer and 2 ms of the rest."""
    micro_batches = run.train.steps * run.train.gradient_accumulation
    return micro_batches * (0.002 + each * run.model["num_hidden_layers"])


def expected_seconds(run: RunConfig, flops: float | None = None) -> float:
    """Return a guess at a run's seconds.

    flops: operations per second (default: a CPU core for a run that stays on the CPU, else `GPU`)."""
    if run.train.cpu and flops is None:
        return seconds_for(run)
    return _in_steps(run, LAUNCHES) + operations(run) / (flops or GPU)


def training_bytes(run: RunConfig) -> float:
    """Return, roughly and in float32: weights, gradients and AdamW's two moments, and what the forward pass of one
    micro-batch keeps for backward. On the CPU dropout keeps attention weights too."""
    model, task = run.model, run.built_task
    length = max(cell.length for cell in task.cells("train")) + task.slots()
    inner = {"none": 0, "plain": 2, "gated": 4}[model["mlp"]] * model["intermediate_size"]
    each = model["num_hidden_layers"] * (8 * model["hidden_size"] + inner) + 3 * task.vocab_size
    if run.train.cpu and model["attention_dropout"]:
        each += model["num_hidden_layers"] * 3 * model["num_attention_heads"] * length
    weights = _parameters(json.dumps({**model, **vocabulary(task)}, sort_keys=True))
    return 4.0 * (4 * weights + each * length * run.train.batch_size)


@cache
def _parameters(config: str) -> int:
    from ..model.configuration_posgen import PosGenConfig

    return sum(p.numel() for p in model_without_data(PosGenConfig(**json.loads(config))).parameters())
