"""What a run costs: floating-point operations, and a guess at seconds."""

from .run_config import RunConfig
from .tasks import build_task


def forward_flops(model: dict, vocab_size: int, length: int) -> float:
    """Of one sequence: two for each weight and token, four for each channel of a query that meets a key (causal); a
    mixer with a state meets as many as its head has channels."""
    width, inner = model["hidden_size"], model["num_attention_heads"] * model["head_dim"]
    keys = model["num_key_value_heads"] * model["head_dim"]
    projections = {"none": 0, "plain": 2, "gated": 3}[model["mlp"]] * width * model["intermediate_size"]
    weights = 2 * width * (inner + keys) + projections
    mixers = model["mixer"] if isinstance(model["mixer"], list) else [model["mixer"]] * model["num_hidden_layers"]
    met = {True: length * (length + 1) / 2, False: length * model["head_dim"]}
    layers = sum(2 * weights * length + 4 * inner * met[mixer["name"] == "softmax"] for mixer in mixers)
    return layers + 2 * width * vocab_size * length


def training_flops(run: RunConfig, tokens_seen: int) -> float:
    """Forward and twice as much backward, for so many tokens at the mean trained length."""
    task = build_task(run.task)
    lengths = [cell.length + task.slots() for cell in task.cells("train")]
    each = sum(forward_flops(run.model, task.vocab_size, length) for length in lengths)
    return 3 * each * tokens_seen / sum(lengths)


def seconds_for(run: RunConfig) -> float:
    """A rough guess for one CPU core, to order the points of a sweep and to tell the time left: a fixed cost for each
    step and layer, and the operations."""
    task, train, layers = build_task(run.task), run.train, run.model["num_hidden_layers"]
    lengths = [cell.length + task.slots() for cell in task.cells("train")]
    micro_batches = train.steps * train.gradient_accumulation
    tokens = micro_batches * train.batch_size * sum(lengths) / len(lengths)
    cells = [cell for split in run.evaluation.splits for cell in task.splits().get(split) or ()]
    asked = sum(forward_flops(run.model, task.vocab_size, cell.length + task.slots()) for cell in cells)
    work = training_flops(run, tokens) + run.evaluation.count * asked
    return micro_batches * (0.002 + 0.003 * layers) + work / 6e10
