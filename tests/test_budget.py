"""Operations are those that torch counts."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from hf_posgen.budget import forward_flops, seconds_for, training_flops
from hf_posgen.tasks import build_task
from hf_posgen.training import build_model

from .training_helpers import small_run

SHAPES = [
    {"mlp": "plain"},
    {"mlp": "gated", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8},
    {"mlp": "none", "norm": "none", "num_hidden_layers": 3},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_forward_operations(shape):
    """`eager` computes every pair of a query and a key, so it meets L keys where a causal pass meets (L + 1) / 2."""
    run = small_run(model=shape)
    task, model, length = build_task(run.task), build_model(run).eval(), 31
    model.set_attn_implementation("eager")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(1, length, dtype=torch.long), use_cache=False)
    counts = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    pairs = counts.pop("aten.bmm")
    channels = run.model["num_attention_heads"] * run.model["head_dim"] * run.model["num_hidden_layers"]
    assert pairs == 4 * channels * length * length
    causal = 4 * channels * length * (length + 1) / 2
    assert forward_flops(run.model, task.vocab_size, length) == sum(counts.values()) + causal


def test_training_costs_three_forwards_and_grows_with_everything():
    run = small_run()
    task = build_task(run.task)
    lengths = [cell.length + task.slots() for cell in task.cells("train")]
    each = sum(forward_flops(run.model, task.vocab_size, length) for length in lengths)
    assert training_flops(run, sum(lengths)) == pytest.approx(3 * each)
    for more in ({"train": {"steps": 24}}, {"model": {"num_hidden_layers": 2}}, {"evaluation": {"count": 10**6}}):
        assert seconds_for(small_run(**more)) > seconds_for(run)
