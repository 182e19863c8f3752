"""A learned absolute table that extrapolates, built by hand: what training could use and does not select (*reconstructed*).

Row p holds cos θ_f p and sin θ_f p for frequencies spread over (0, π) by the golden ratio; W_Q turns each pair by θ_f k, so
that q_p · k_j = A Σ_f cos θ_f (p - j - k), a kernel of the offset alone. Values copy the token, the head reads it.
"""

import math

import torch

from ...run.build import build_model, build_run

PAIRS = 22  # 16 symbols and two control tokens leave 46 of 64 channels


@torch.no_grad()
def learned_table_that_extrapolates(offset: int = 3, lengths=(16, 17, 48, 128, 512, 1024), sharpness: float = 5.0):
    """A one-layer, one-head model of width 64 with `position_encoding: learned`, and its task."""
    task = {"name": "fixed_offset", "offset": offset, "test_lengths": [n for n in lengths if n > 16]}
    model = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "norm": "none", "mlp": "none"}
    run = build_run({"model": model | {"position_encoding": "learned"}, "task": task, "train": {"cpu": True}})
    net, task = build_model(run).eval(), run.built_task
    for parameter in net.parameters():
        parameter.zero_()
    symbols, first = task.vocab_size, task.vocab_size
    golden = (math.sqrt(5) - 1) / 2
    theta = math.pi * torch.remainder(torch.arange(1, PAIRS + 1, dtype=torch.float64) * golden, 1.0)
    cosine = torch.arange(first, first + PAIRS)
    sine = cosine + PAIRS
    angles = torch.arange(net.config.max_position_embeddings)[:, None] * theta
    net.model.position_encoding.weight[:, cosine] = angles.cos().float()
    net.model.position_encoding.weight[:, sine] = angles.sin().float()
    net.model.embed_tokens.weight[:, :symbols] = torch.eye(symbols)
    attention = net.model.layers[0].self_attn
    for weight, turn in ((attention.k_proj.weight, 0.0 * theta), (attention.q_proj.weight, -offset * theta)):
        rows = torch.arange(PAIRS)
        weight[rows, cosine], weight[rows, sine] = turn.cos().float(), -turn.sin().float()
        weight[rows + PAIRS, cosine], weight[rows + PAIRS, sine] = turn.sin().float(), turn.cos().float()
    attention.q_proj.weight.mul_(sharpness / attention.scaling)
    attention.v_proj.weight[:symbols, :symbols] = torch.eye(symbols)
    attention.o_proj.weight[:symbols, :symbols] = 10 * torch.eye(symbols)
    net.lm_head.weight[:, :symbols] = torch.eye(symbols)
    return net, task


@torch.no_grad()
def accuracy_by_length(lengths=(16, 17, 48, 128, 512, 1024), count: int = 200, seed: int = 0) -> dict[int, float]:
    from ...evaluation.measuring import Measurement
    from ...tasks import Cell

    net, task = learned_table_that_extrapolates(lengths=lengths)
    measurement = Measurement(net, task, seed, count, batch_tokens=2**16)
    return {n: measurement.row("test", Cell(n, task.offset))["exact_match"] for n in lengths}
