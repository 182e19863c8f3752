"""Time and peak memory of one attention layer per encoding, side by side in one run.

    python scripts/benchmark_attention.py [--lengths 1024 4096] [--train-lengths 1024 4096] [--encodings alibi t5]

Each measurement runs in a process of its own (so that peak memory is its own), alternating with plain causal attention:
ratios are medians of pairs. "dense" is a bias written out as heads × length × length and given to the fused kernel as a
mask, as most implementations do.
"""

import argparse
import os
import pickle
import resource
import time

import pandas as pd

HEADS, SIZE = 8, 64


def measure(name: str, length: int, train: bool, repeats: int) -> tuple[list[float], float]:
    """(seconds per pass, peak memory above the start in MiB) of one encoding's attention, in a child process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(_in_child(name, length, train, repeats), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        result = pickle.load(pipe)
    os.waitpid(child, 0)
    return result


def _in_child(name: str, length: int, train: bool, repeats: int):
    import torch

    from hf_posgen.model.attention_mask import Visible

    torch.manual_seed(0)
    tensors = [torch.randn(1, HEADS, length, SIZE, requires_grad=train) for _ in range(3)]
    x = torch.randn(1, length, HEADS * SIZE)
    run = _dense(name, length, tensors) if name.startswith("dense ") else _ours(name, length, x, tensors, Visible)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        with torch.set_grad_enabled(train):
            out = run()
            if train:
                out.sum().backward()
        times.append(time.perf_counter() - start)
    return times[1:], (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def _encoding(name: str, length: int):
    from hf_posgen.model.configuration_posgen import PosGenConfig
    from hf_posgen.model.encoding_registry import build_encoding

    config = PosGenConfig(hidden_size=HEADS * SIZE, num_attention_heads=HEADS, max_position_embeddings=length)
    encoding = build_encoding(name, config)
    encoding.reset_parameters()
    return encoding


def _ours(name: str, length: int, x, tensors, visible):
    import torch

    from hf_posgen.model.attention_kernels import attend
    from hf_posgen.model.context import build_context
    from hf_posgen.model.logit_scale import LogitScale

    encoding, scale = _encoding(name, length), LogitScale(None)
    context = build_context(x, None, None, None, None, None, encoding.depends_on_length)

    def run() -> torch.Tensor:
        queries, keys = context.with_hidden(x, encoding, None)
        tables = encoding.tables(queries, keys)
        q, k, v = tensors
        q, k, v = (
            encoding.query(q, queries, *tables),
            encoding.key(k, queries, *tables),
            encoding.value(v, queries, *tables),
        )
        bias = encoding.bias(queries, keys, *tables)
        settings = {"queries": queries, "keys": keys, "visible": context.visible, "logit_scale": scale}
        out, _ = attend(q, k, v, bias=bias, scale=SIZE**-0.5, implementation="sdpa", **settings)
        return encoding.output(out, queries, *tables)

    return run


def _dense(name: str, length: int, tensors):
    import torch

    encoding = _encoding(name.removeprefix("dense "), length)

    def run() -> torch.Tensor:
        distance = (torch.arange(length)[:, None] - torch.arange(length)).clamp(min=0)
        if hasattr(encoding, "slopes_H"):
            from hf_posgen.model.position_encoding import Tokens

            index = torch.arange(length)[None]
            bias = -encoding.slopes_H(Tokens(index, index))[:, None, None] * distance
        else:
            bias = encoding.weight[:, encoding.bucket(distance)]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        mask = torch.where(causal, bias, float("-inf"))[None]
        return torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=mask)

    return run


def table(names, lengths, train: bool, repeats: int) -> pd.DataFrame:
    rows = []
    for length in lengths:
        for name in names:
            if name.startswith("dense ") and length > 8192:
                continue
            pairs = [(measure(name, length, train, 1), measure("none", length, train, 1)) for _ in range(repeats)]
            ratios = sorted(min(mine[0]) / min(plain[0]) for mine, plain in pairs)
            rows.append(
                {
                    "encoding": name,
                    "length": length,
                    "ms": round(1e3 * min(min(mine[0]) for mine, _ in pairs), 1),
                    "× none (time)": round(ratios[len(ratios) // 2], 2),
                    "MiB": round(max(mine[1] for mine, _ in pairs)),
                    "MiB of none": round(max(plain[1] for _, plain in pairs)),
                }
            )
            print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [
        "rope",
        "alibi",
        "sandwich",
        "forgetting_gate",
        "t5",
        "kerple",
        "clipped",
        "fire",
        "cope",
        "dense alibi",
        "dense t5",
    ]
    parser.add_argument("--encodings", nargs="+", default=every)
    parser.add_argument("--lengths", nargs="*", type=int, default=[1024, 4096, 16384])
    parser.add_argument("--train-lengths", nargs="*", type=int, default=[1024, 4096])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    import hf_posgen.model.modeling_posgen  # noqa: F401 - once, before the forks

    for train, lengths in ((False, options.lengths), (True, options.train_lengths)):
        if lengths:
            print("\nforward and backward" if train else "\nforward", flush=True)
            print(table(options.encodings, lengths, train, options.repeats).to_markdown(index=False))


if __name__ == "__main__":
    main()
