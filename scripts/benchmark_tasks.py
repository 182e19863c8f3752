"""Tokens per second of every task on one core, beside a plain Python loop, and what a training step pays for its batch.

    OMP_NUM_THREADS=1 python scripts/benchmark_tasks.py [TASK ...] [--seconds .5] [--step]

Tokens are those of whole sequences (`examples`, with its labels, from blocks not drawn before); seconds are of CPU time.
The loop draws the same sequences token by token with `random`; tasks without one have no entry. No package that generates
such tasks could be installed for a comparison: zoology, mad-lab and randomized_positional_encodings are repositories, on no
registry. `--step`: the share of a training step of the quickstart's two models that goes into drawing its batch.
"""

import argparse
import os
import random
import time

import pandas as pd

from hf_posgen.tasks import build_task, examples, generated_tasks, train_cell


def plain_fixed_offset(task, cell):
    x = [random.randrange(task.symbols) for _ in range(cell.length)]
    answer = x[cell.length - 1 - task.offset]
    return x + [answer], [-100] * cell.length + [answer]


def plain_delay_copy(task, cell):
    """The stream from its description: tasks one after the other, then a window."""
    R, C = task.control("R"), task.control("C")
    stream, labels, data = [], [], []
    start = random.randrange(3 * task.window)

    def put(token, label=-100):
        stream.append(token)
        labels.append(label)
        if token < task.symbols:
            data.append(token)

    def block(most):
        put(R)
        for _ in range(min(most - 1, sum(random.random() < task.block_probability for _ in range(task.block_trials)))):
            put(random.randrange(task.symbols))

    while len(stream) < start + task.window:
        for _ in range(random.randint(1, task.gap_blocks)):
            block(100)
        while len(data) < task.copied:
            block(100)
        source = data[-task.copied :]
        put(C)
        end = len(stream) + random.randint(task.d_min, task.d_max)
        while len(stream) < end:
            block(end - len(stream))
        put(C)
        for token in source:
            put(token, token)
    window = labels[start : start + task.window]
    window[: task.skip] = [-100] * task.skip
    return stream[start : start + task.window], window


def plain_cued_delay(task, cell):
    n = cell.length - 1 - task.digits
    x, d = [random.randrange(task.symbols) for _ in range(n)], random.choice(task.trained_distances.tolist())
    cue = [task.control(f"D{digit}") for digit in f"{d:0{task.digits}d}"]
    answer = x[n - 1 - d]
    return x + [task.control("Q"), *cue, answer], [-100] * cell.length + [answer]


def plain_unique_copy(task, cell):
    return _copy(task, cell, random.sample(range(task.symbols), cell.distance - 1))


def plain_repeat_copy(task, cell):
    return _copy(task, cell, [random.randrange(task.symbols) for _ in range(cell.distance - 1)])


def _copy(task, cell, x):
    paste = [x[i] for i in task.picked(len(x))]
    front = [task.control("BLANK")] * (cell.length - task.tight(len(x))) + x + [task.control("SEP")]
    return front + paste, [-100] * len(front) + paste


def plain_induction(task, cell):
    x = [random.randrange(task.symbols) for _ in range(cell.length)]
    answer = cell.length - 1 - random.choice(task.trained_distances.tolist())
    x[answer - 1] = x[-1] = task.control("M")
    return x + [x[answer]], [-100] * cell.length + [x[answer]]


def plain_multi_query_recall(task, cell):
    keys = random.sample(range(task.symbols, task.symbols + task.keys), task.pairs)
    pairs = [(key, random.randrange(task.symbols)) for key in keys]
    asked = random.sample(pairs, len(pairs))
    gap = random.choice(task.trained_distances.tolist()) - 2 * task.pairs
    blank = task.control("BLANK")
    tokens = [token for pair in pairs for token in pair] + [blank] * gap
    tokens = [blank] * (cell.length - len(tokens) - 2 * task.pairs) + tokens
    labels = [-100] * len(tokens)
    for key, value in asked:
        tokens += [key, value]
        labels += [-100, value]
    return tokens, labels


def plain_selective_copying(task, cell):
    m, d = task.copied, random.choice(task.trained_distances.tolist())
    first = cell.length - m - d
    places = [first, *sorted(random.sample(range(first + 1, first + d - 1), m - 1))]
    x = [random.randrange(task.symbols) for _ in range(m)]
    tokens = [task.control("NOISE")] * (cell.length - m - 1) + [task.control("SEP")]
    for place, token in zip(places, x, strict=True):
        tokens[place] = token
    return tokens + x, [-100] * len(tokens) + x


PLAIN = {name.removeprefix("plain_"): fn for name, fn in list(globals().items()) if name.startswith("plain_")}
PLAIN["stride_copy"] = plain_repeat_copy


def speed(draw, seconds: float) -> float:
    """Tokens per second of CPU time: the best of five runs. `draw(i)` returns how many tokens it drew."""
    draw(0)
    best, call = 0.0, 1
    for _ in range(5):
        tokens, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds / 5:
            tokens += draw(call)
            call += 1
        best = max(best, tokens / spent)
    return best


def row(name: str, seconds: float) -> dict:
    task = build_task(name)
    cell = task.cells("train")[-1]

    def fast(i):
        first, _ = examples(task, i, "train", cell, 0, 4096)
        return first.shape[0] * first.shape[1]

    def batch(i):
        mine = train_cell(task, 0, i)
        examples(task, 0, "train", mine, 64 * i, 64 * i + 64)
        return 1

    def plain(_):
        return sum(len(PLAIN[name](task, cell)[0]) for _ in range(20))

    million = speed(fast, seconds) / 1e6
    loop = speed(plain, seconds) / 1e6 if name in PLAIN else float("nan")
    return {
        "task": name,
        "cell": str(cell),
        "M tokens/s": round(million, 1),
        "plain loop, M tokens/s": round(loop, 2),
        "times faster": round(million / loop) if loop == loop else None,
        "ms per batch of 64": round(1e3 / speed(batch, seconds), 3),
    }


def step_share() -> list[dict]:
    """Seconds per step of the quickstart's models with a batch drawn each step, and how much of it is drawing."""
    import torch

    from hf_posgen.model.modeling_posgen import PosGenConfig, PosGenForCausalLM

    torch.set_num_threads(1)
    plain = {"num_hidden_layers": 1, "num_attention_heads": 1, "norm": "none", "mlp": "none"}
    deep = {"num_hidden_layers": 4, "num_attention_heads": 2}
    rows = []
    for name, shape, count in (("fixed_offset", plain, 256), ("delay_copy", deep, 32)):
        task = build_task(name)
        config = PosGenConfig(
            hidden_size=64, vocab_size=task.vocab_size, max_position_embeddings=2048, position_encoding="rope", **shape
        )
        model, drawing, start = PosGenForCausalLM(config), 0.0, 0.0
        for step in range(-5, 100):
            if step == 0:
                drawing, start = 0.0, time.process_time()
            step = step % 100
            began = time.process_time()
            pair = examples(task, 0, "train", train_cell(task, 0, step), step * count, step * count + count)
            tokens, labels = map(torch.from_numpy, pair)
            drawing += time.process_time() - began
            model(input_ids=tokens, labels=labels).loss.backward()
        whole = time.process_time() - start
        rows.append(
            {"task": name, "batch": count, "ms per step": round(whole * 10, 2), "drawing": f"{drawing / whole:.1%}"}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(generated_tasks()), metavar="TASK")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--step", action="store_true")
    options = parser.parse_args()
    unknown = set(options.tasks) - set(generated_tasks())
    if unknown:
        parser.error(f"unknown task {min(unknown)!r}; allowed: {', '.join(generated_tasks())}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print(pd.DataFrame([row(name, options.seconds) for name in options.tasks]).to_markdown(index=False))
    if options.step:
        print(f"\n{pd.DataFrame(step_share()).to_markdown(index=False)}")


if __name__ == "__main__":
    main()
