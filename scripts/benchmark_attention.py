"""Time and peak memory of one layer's attention, projections left out, side by side in one run.

    python scripts/benchmark_attention.py [--lengths 1024 4096] [--train-lengths 1024] [--only alibi t5] [--repeats 3]

"none" is plain causal attention by torch's fused kernel; "dense" gives it the whole heads × length × length bias as a
mask; "bloom", "mpt" and "t5 of transformers" are that library's attention of the same shape, with the mask and bias its
model makes in each pass. Each measurement runs in a process of its own, in turn with one of "none": ratios are medians
of such pairs. `ms` is wall time (the shortest); `× none` compares processor time, summed over threads, which other
processes on the machine disturb least; MiB is the peak of what torch allocates in the first
pass, q, k, v and the result included.
"""

import argparse
import os
import pickle
import statistics
import time

import pandas as pd

OURS = ["rope", "selective_rope", "alibi", "forgetting_gate", "grape", "t5", "kerple", "clipped", "sandwich"]
OURS += ["fire", "shaw", "cope"]
DENSE = ["dense alibi", "dense t5", "bloom of transformers", "mpt of transformers", "t5 of transformers"]


def measure(name: str, length: int, train: bool, options) -> tuple[float, float, float]:
    """(wall seconds, processor seconds, peak MiB) of one pass after a first, in a child process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(_in_child(name, length, train, options), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        result = pickle.load(pipe)
    os.waitpid(child, 0)
    return result


def _in_child(name: str, length: int, train: bool, options):
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    x = torch.randn(1, length, options.heads * options.size)  # the layer's input, which gates read

    def once(run):
        with torch.set_grad_enabled(train):
            out = run()
            if train:
                out.sum().backward()

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        run = attention(name, x, options, train)
        once(run)
    events = [e for e in trace.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    start = time.perf_counter(), time.process_time()
    once(run)
    return time.perf_counter() - start[0], time.process_time() - start[1], peak / 2**20


def attention(name: str, x, options, train: bool):
    """A function that computes attention once."""
    import torch

    length = x.shape[1]
    shape = (1, options.heads, length, options.size)
    q, k, v = (torch.randn(shape, requires_grad=train) for _ in range(3))
    if name.endswith(" of transformers"):
        qkv = torch.randn(1, length, 3 * options.heads * options.size, requires_grad=train)
        return theirs(name.split()[0], qkv, options)
    if name == "none":
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    if name.startswith("dense "):
        return dense(encoding(name.removeprefix("dense "), length, options), q, k, v)
    return ours(encoding(name, length, options), x, q, k, v)


def encoding(name: str, length: int, options):
    from hf_posgen.model.configuration_posgen import PosGenConfig
    from hf_posgen.model.encoding_registry import build_encoding

    heads, width = options.heads, options.heads * options.size
    module = build_encoding(
        name, PosGenConfig(hidden_size=width, num_attention_heads=heads, max_position_embeddings=length)
    )
    module.reset_parameters()
    return module


def ours(module, x, q, k, v):
    """The steps of `SoftmaxAttention` between its projections."""
    import torch

    from hf_posgen.model.attention_kernels import attend
    from hf_posgen.model.context import build_context
    from hf_posgen.model.logit_scale import LogitScale

    def run() -> torch.Tensor:
        context = build_context(x, needs_lengths=module.depends_on_length)
        queries, keys = context.with_hidden(x, module, None)
        tables = module.tables(queries, keys)
        turned_q, turned_k = module.query(q, queries, *tables), module.key(k, queries, *tables)
        out, _ = attend(
            turned_q,
            turned_k,
            module.value(v, queries, *tables),
            queries=queries,
            keys=keys,
            visible=context.visible,
            bias=module.bias(queries.with_vectors(turned_q), keys.with_vectors(turned_k), *tables),
            scale=q.shape[-1] ** -0.5,
            logit_scale=LogitScale(None),
        )
        return module.output(out, queries, *tables)

    return run


def dense(module, q, k, v):
    """The whole bias written out and given to the fused kernel as a mask."""
    import torch

    from hf_posgen.model.position_encoding import Tokens

    length = q.shape[2]
    index = torch.arange(length)[None]

    def run() -> torch.Tensor:
        distance = (index.T - index).clamp(min=0)
        if hasattr(module, "bucket"):
            bias = module.weight[:, module.bucket(distance)]
        else:
            bias = -module.slopes_H(Tokens(index, index))[:, None, None] * distance
        mask = torch.where(index <= index.T, bias, float("-inf"))[None]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    return run


def theirs(name: str, qkv, options):
    """transformers' attention module with its projections taken out, and what its model prepares in each pass."""
    import torch
    from transformers import BloomConfig, MptConfig, T5Config
    from transformers.masking_utils import create_causal_mask
    from transformers.models.bloom.modeling_bloom import BloomAttention, build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import MptAttention, build_mpt_alibi_tensor
    from transformers.models.t5.modeling_t5 import T5Attention

    class Given(torch.nn.Module):
        def forward(self, x):
            return x

    heads, width, length = options.heads, options.heads * options.size, qkv.shape[1]
    real = torch.ones(1, length)
    if name == "bloom":
        config = BloomConfig(hidden_size=width, n_head=heads, attn_implementation="eager")
        module, residual = BloomAttention(config, 0), torch.zeros(1, length, width)
        module.query_key_value = module.dense = Given()

        def prepared():
            return {"residual": residual, "alibi": build_alibi_tensor(real, heads, qkv.dtype)}
    elif name == "mpt":
        config = MptConfig(d_model=width, n_heads=heads, max_seq_len=length, attn_implementation="eager")
        module = MptAttention(config, 0)
        module.Wqkv = module.out_proj = Given()

        def prepared():
            return {"position_bias": build_mpt_alibi_tensor(heads, length)}
    else:
        sizes = {"d_model": width, "num_heads": heads, "d_kv": options.size, "is_decoder": True, "dropout_rate": 0.0}
        config = T5Config(**sizes, attn_implementation="sdpa")
        module = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
        parts = [qkv[..., i * width : (i + 1) * width] for i in range(3)]
        for name_of, part in zip("qkv", parts, strict=True):
            setattr(module, name_of, Given())
            getattr(module, name_of).forward = lambda x, part=part: part
        module.o = Given()
        prepared = dict

    def run() -> torch.Tensor:
        embeds = torch.empty(1, length, width)
        mask = create_causal_mask(config=config, inputs_embeds=embeds, attention_mask=None, cache=None)
        if name == "mpt":
            mask = {"attention_mask": mask.to(torch.bool)}
        else:
            mask = {"mask" if name == "t5" else "attention_mask": mask}
        return module(embeds if name == "t5" else qkv, **prepared(), **mask)[0]

    return run


def table(names, length: int, train: bool, options) -> pd.DataFrame:
    rows = []
    for name in names:
        if name in DENSE and length > options.longest_dense:
            continue
        pairs = [[measure(one, length, train, options) for one in (name, "none")] for _ in range(options.repeats)]
        mine, plain = zip(*pairs, strict=True)
        memory, base = (statistics.median(m[2] for m in side) for side in (mine, plain))
        row = {
            "attention": name,
            "length": length,
            "ms": round(1e3 * min(m[0] for m in mine), 1),
            "× none": round(statistics.median(m[1] / p[1] for m, p in pairs), 2),
            "MiB": round(memory),
            "MiB × none": round(memory / max(base, 0.1), 2),
        }
        print(row, flush=True)
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=OURS + DENSE)
    parser.add_argument("--lengths", nargs="*", type=int, default=[1024, 4096, 16384, 65536])
    parser.add_argument("--train-lengths", nargs="*", type=int, default=[1024, 4096])
    parser.add_argument("--longest-dense", type=int, default=4096, help="dense biases need heads × length² numbers")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    import transformers.models.bloom.modeling_bloom
    import transformers.models.mpt.modeling_mpt
    import transformers.models.t5.modeling_t5  # noqa: F401

    import hf_posgen.model.modeling_posgen  # noqa: F401 - once, before the forks

    for train, lengths in ((False, options.lengths), (True, options.train_lengths)):
        for length in lengths:
            print(f"\n{'forward and backward' if train else 'forward'}, {length} tokens", flush=True)
            print(table(options.only, length, train, options).to_markdown(index=False), flush=True)


if __name__ == "__main__":
    main()
