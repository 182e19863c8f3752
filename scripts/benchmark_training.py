"""Our model beside transformers' own: a training step and cached decoding, in one run on this machine.

    python scripts/benchmark_training.py [--lengths 256 1024 2048] [--only gpt2 llama] [--repeats 5] [--threads 2]
        [--clock processor]

Each pair has the same shape, the same random tokens and the same optimizer, and takes its steps in turn, so that what
else the machine does strikes both. Times are medians; the ratio is ours / theirs, below 1 where we are faster. On a busy
machine take `--threads 1 --clock processor`: seconds of this process, not of the wall. `converts`
says whether ours computes exactly what theirs does (same weights, same logits) or only has its shape.
"""

import argparse
import statistics
import time

import pandas as pd
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MptConfig,
    MptForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_posgen import PosGenConfig, PosGenForCausalLM
from hf_posgen.convert import from_transformers

VOCABULARY = 1024
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


class T5Decoder(torch.nn.Module):
    """T5's decoder alone, over one encoder state, so that it can be trained like the others; its cross-attention over
    that one state is part of the price."""

    def __init__(self, width: int, layers: int, heads: int):
        super().__init__()
        sizes = {"d_model": width, "num_heads": heads, "d_kv": width // heads, "d_ff": 4 * width}
        config = T5Config(vocab_size=VOCABULARY, num_layers=1, num_decoder_layers=layers, dropout_rate=0.0, **sizes)
        self.model = T5ForConditionalGeneration(config)
        del self.model.encoder
        self.config = config

    def forward(self, ids, cache=None, use_cache=False):
        state = torch.zeros(len(ids), 1, self.config.d_model)
        decoder = self.model.decoder
        out = decoder(input_ids=ids, encoder_hidden_states=state, cache=cache, use_cache=use_cache)
        return self.model.lm_head(out.last_hidden_state), out.cache


def pairs(width: int, layers: int, heads: int, longest: int) -> dict:
    """{name: builder of (their model, ours)}."""
    plain = {"vocab_size": VOCABULARY, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    drop = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    short = {"vocab_size": VOCABULARY, "n_embd": width, "n_layer": layers, "n_head": heads}
    own = PosGenConfig(**plain, position_encoding="t5", norm="rmsnorm", hidden_act="relu", tie_word_embeddings=True)
    theirs = {
        "llama": lambda: LlamaForCausalLM(
            LlamaConfig(**plain, intermediate_size=4 * width, max_position_embeddings=longest)
        ),
        "gpt2": lambda: GPT2LMHeadModel(
            GPT2Config(**short, n_positions=longest, bos_token_id=None, eos_token_id=None, **drop)
        ),
        "bloom": lambda: BloomForCausalLM(BloomConfig(**plain)),
        "mpt": lambda: MptForCausalLM(
            MptConfig(vocab_size=VOCABULARY, d_model=width, n_layers=layers, n_heads=heads, max_seq_len=longest)
        ),
    }

    def converted(build):
        model = build()
        return model, from_transformers(model)

    out = {name: lambda build=build: converted(build) for name, build in theirs.items()}
    out["t5"] = lambda: (T5Decoder(width, layers, heads), PosGenForCausalLM(own))
    try:
        import x_transformers  # noqa: F401
    except ImportError:
        return out
    return out | {
        f"x-transformers {name}": lambda name=name: x_pair(name, width, layers, heads, longest)
        for name in ("rope", "alibi")
    }


def x_pair(name: str, width: int, layers: int, heads: int, longest: int):
    """x-transformers' decoder of the same shape, if it is installed."""
    from x_transformers import Decoder, TransformerWrapper

    kind = {"rope": {"rotary_pos_emb": True}, "alibi": {"alibi_pos_bias": True, "alibi_num_heads": heads}}[name]
    decoder = Decoder(dim=width, depth=layers, heads=heads, attn_dim_head=width // heads, attn_flash=True, **kind)
    theirs = TransformerWrapper(
        num_tokens=VOCABULARY, max_seq_len=longest, attn_layers=decoder, use_abs_pos_emb=False, tie_embedding=False
    )
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    return theirs, PosGenForCausalLM(PosGenConfig(vocab_size=VOCABULARY, position_encoding=name, **sizes))


def logits(model, ids, cache=None, use_cache=False):
    """(logits, cache) of whatever class of model."""
    if isinstance(model, T5Decoder):
        return model(ids, cache=cache, use_cache=use_cache)
    if type(model).__module__.startswith("x_transformers"):
        return model(ids), None
    out = model(ids, cache=cache, use_cache=use_cache)
    return out.logits, out.cache


def seconds(action, clock) -> float:
    start = clock()
    action()
    return clock() - start


def training_step(model, ids):
    """An action: forward, loss, backward, AdamW."""
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-4)

    def step():
        scores = logits(model, ids[:, :-1])[0]
        torch.nn.functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


@torch.no_grad()
def decoding(model, prompt, count: int, clock) -> float:
    """Seconds for `count` greedy tokens, one by one, after the prompt is in the cache."""
    scores, cache = logits(model.eval(), prompt, DynamicCache(), use_cache=True)
    start = clock()
    for _ in range(count):
        scores, cache = logits(model, scores[:, -1:].argmax(-1), cache, use_cache=True)
    return clock() - start


def compare(name: str, build, length: int, options) -> dict:
    models, clock = build(), CLOCKS[options.clock]
    ids = torch.randint(VOCABULARY, (max(1, options.tokens // length), length + 1))
    steps = [training_step(model, ids) for model in models]
    for step in steps:
        step()
    times = [[seconds(step, clock) for step in steps] for _ in range(options.repeats)]
    theirs, ours = (statistics.median(column) for column in zip(*times, strict=True))
    row = {"model": name, "length": length, "converts": name in ("llama", "gpt2", "bloom", "mpt")}
    row |= {"their step ms": 1e3 * theirs, "our step ms": 1e3 * ours, "step ours/theirs": ours / theirs}
    if name.startswith("x-transformers"):
        return row
    room = {"gpt2": length, "mpt": length}.get(name, 10**9)  # their tables end there
    count = min(options.decode, room // 2)
    prompt = ids[:1, : min(length, room - count)]
    times = [[decoding(model, prompt, count, clock) for model in models] for _ in range(max(1, options.repeats // 2))]
    theirs, ours = (statistics.median(column) / count for column in zip(*times, strict=True))
    return row | {"their tokens/s": 1 / theirs, "our tokens/s": 1 / ours, "token time ours/theirs": ours / theirs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", nargs="+", type=int, default=[256, 1024, 2048], help="tokens per sequence")
    parser.add_argument("--tokens", type=int, default=2048, help="tokens per step, in as many sequences as fit")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--decode", type=int, default=64, help="tokens to decode")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of torch (default: its own choice)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--only", nargs="+", help="which models")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    builders = pairs(options.width, options.layers, options.heads, max(options.lengths))
    unknown = set(options.only or ()) - set(builders)
    if unknown:
        parser.error(f"unknown model {', '.join(sorted(unknown))}; allowed: {', '.join(builders)}")
    rows = []
    for name in options.only or builders:
        for length in options.lengths:
            rows.append(compare(name, builders[name], length, options))
            print(rows[-1], flush=True)
    shape = f"width {options.width}, {options.layers} layers, {options.heads} heads, {options.tokens} tokens per step"
    print(f"\n{shape}, float32, {torch.get_num_threads()} threads, torch {torch.__version__}, {options.clock} time\n")
    print(pd.DataFrame(rows).to_markdown(index=False, floatfmt=".2f"))


if __name__ == "__main__":
    main()
