"""Models whose attention is known because every weight is set by hand."""

import torch

from hf_posgen.analysis.context import AnalysisContext
from hf_posgen.run.build import build_model, build_run

SYMBOLS, ONE, ANSWER = 16, 20, 32  # channels: the token, a constant 1, where the answer is written


def context(encoding, *, offset=3, lengths=(17, 32, 48, 128), **model) -> AnalysisContext:
    """One layer, one head of 64. All weights are 0, except: embeddings are one-hot with a constant 1, values copy the
    token, and the head reads it. Without more, attention is even."""
    settings = {
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "norm": "none",
        "mlp": "none",
        "position_encoding": encoding,
    }
    task = {"name": "fixed_offset", "offset": offset, "min_length": max(4, offset + 1), "test_lengths": list(lengths)}
    run = build_run({"model": settings | model, "task": task, "train": {"cpu": True}})
    net = build_model(run).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        size = net.config.vocab_size
        net.model.embed_tokens.weight[:, :size] = torch.eye(size)
        net.model.embed_tokens.weight[:, ONE] = 1.0
        for layer in net.model.layers:
            layer.self_attn.v_proj.weight[:SYMBOLS, :SYMBOLS] = torch.eye(SYMBOLS)
            layer.self_attn.o_proj.weight[ANSWER : ANSWER + SYMBOLS, :SYMBOLS] = torch.eye(SYMBOLS)
        net.lm_head.weight[:SYMBOLS, ANSWER : ANSWER + SYMBOLS] = torch.eye(SYMBOLS)
    return AnalysisContext(net, None, run, run.built_task, count=64)


@torch.no_grad()
def constant_query_and_key(net, query_K, key_K) -> None:
    """Every token asks `query_K` and answers to `key_K`, before the encoding acts."""
    attention = net.model.layers[0].self_attn
    attention.q_proj.weight[:, ONE], attention.k_proj.weight[:, ONE] = query_K, key_K


@torch.no_grad()
def clipped_solution(offset=3, height=8.0, **options) -> AnalysisContext:
    """A bias of `height` at the offset and 0 elsewhere: solves the task until dilution wins."""
    made = context({"name": "clipped", "distances": 17}, offset=offset, **options)
    made.model.model.position_encoding.weight[:, offset] = height
    return made


@torch.no_grad()
def carrier_solution(offset=3, frequencies=range(32), height=4.0) -> AnalysisContext:
    """A rotary kernel Σ_f A cos(θ_f (δ - k)), the same for all tokens."""
    made = context("rope", offset=offset)
    theta = made.model.model.position_encoding.frequencies()
    query, key = torch.zeros(64), torch.zeros(64)
    chosen = torch.tensor(list(frequencies))
    key[chosen] = height
    query[chosen], query[chosen + 32] = (theta[chosen] * offset).cos().float(), -(theta[chosen] * offset).sin().float()
    constant_query_and_key(made.model, query, key)
    return made
