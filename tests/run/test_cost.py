"""Operations are those that torch counts."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from hf_posgen.run.build import build_model, build_run
from hf_posgen.run.cost import expected_seconds, forward_flops, operations, seconds_for, training_bytes, training_flops
from hf_posgen.sweep.run import format_seconds
from hf_posgen.tasks import examples
from tests.helpers.training_helpers import small_run

SHAPES = [
    {"mlp": "plain"},
    {"mlp": "gated", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8},
    {"mlp": "none", "norm": "none", "num_hidden_layers": 3},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_forward_operations(shape):
    """`eager` computes every pair of a query and a key, so it meets L keys where a causal pass meets (L + 1) / 2."""
    run = small_run(model=shape)
    task, model, length = run.built_task, build_model(run).eval(), 31
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
    task = run.built_task
    lengths = [cell.length + task.slots() for cell in task.cells("train")]
    each = sum(forward_flops(run.model, task.vocab_size, length) for length in lengths)
    assert training_flops(run, sum(lengths)) == pytest.approx(3 * each)
    for more in ({"train": {"steps": 24}}, {"model": {"num_hidden_layers": 2}}, {"evaluation": {"count": 10**6}}):
        assert seconds_for(small_run(**more)) > seconds_for(run)


@pytest.mark.parametrize("more", [{}, {"attention_dropout": 0.1, "hidden_dropout": 0.1}, {"mlp": "gated"}])
@pytest.mark.parametrize("encoding", ["none", "rope"])
def test_memory_is_what_a_step_holds_within_a_third(encoding, more):
    model = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2, "position_encoding": encoding}
    tree = {
        "model": model | more,
        "task": {"name": "delay_copy", "window": 128},
        "train": {"cpu": True, "batch_size": 4},
    }
    run = build_run(tree)
    net, task, kept = build_model(run).train(), run.built_task, {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes(), tensor
        return tensor

    ids, labels = map(torch.from_numpy, examples(task, 0, "train", task.cells("train")[0], 0, 4))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        net(input_ids=ids, labels=labels, use_cache=False)
    weights = {p.untyped_storage().data_ptr(): p.untyped_storage().nbytes() for p in net.parameters()}
    held = 4 * sum(weights.values()) + sum(size for at, (size, _) in kept.items() if at not in weights)
    assert training_bytes(run) == pytest.approx(held, rel=1 / 3)


def test_time_is_operations_over_a_rate():
    run = small_run(train={"cpu": False})
    once = expected_seconds(run, 1e9) - operations(run) / 1e9
    assert once == pytest.approx(expected_seconds(run, 1e15), rel=1e-3) and expected_seconds(
        run, 1e9
    ) > expected_seconds(run)
    assert once == pytest.approx(run.train.steps * run.train.gradient_accumulation * 2.5e-3), "a small model waits"
    assert expected_seconds(small_run()) == seconds_for(small_run()), "a CPU core, for a run that stays there"
    assert [format_seconds(s) for s in (3, 119, 120, 7300, 200_000)] == [
        "3 s",
        "119 s",
        "2.0 min",
        "2.0 hours",
        "2.3 days",
    ]
