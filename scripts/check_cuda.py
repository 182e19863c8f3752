"""Check the CUDA paths, then time them: `python scripts/check_cuda.py`. Ready for a GPU; does nothing without one.

First parity against float64 eager on the same device: fused attention with columns, flex attention with learned biases
(forward and gradient), float32 and bfloat16, padded rows. Then the table of `benchmark_attention` in CUDA events.
"""

import argparse
import sys

import pandas as pd
import torch
from benchmark_attention import DENSE, OURS, attention

sys.path.insert(0, str(__import__("pathlib").Path(__file__).parent.parent))

from tests.model.helpers import tiny, tokens

from hf_posgen.model.capabilities import capabilities
from hf_posgen.model.validation import implementations


def parity(name: str, implementation: str, dtype: torch.dtype) -> dict:
    """The largest error of logits and gradients against float64, relative to the largest value."""
    model = tiny(
        name, hidden_size=256, num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=512
    ).cuda()
    rows = tokens(2, 256).cuda()
    rows[0, :17] = 0
    mask = (rows != 0).long()
    real = mask.bool()

    def run(implementation: str, precision: torch.dtype):
        net = model.to(precision)
        net.set_attn_implementation(implementation)
        net.zero_grad()
        logits = net(rows, attention_mask=mask, use_cache=False).logits[real]
        logits.float().square().mean().backward()
        grads = torch.cat([p.grad.flatten().double() for p in net.parameters() if p.grad is not None])
        return logits.detach().double(), grads

    state = {key: value.clone() for key, value in model.state_dict().items()}
    exact = run("eager", torch.float64)
    model.load_state_dict(state)
    ours = run(implementation, dtype)
    errors = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, exact, strict=True)]
    return {
        "encoding": name,
        "implementation": implementation,
        "dtype": str(dtype)[6:],
        "logits": errors[0],
        "gradient": errors[1],
    }


def timing(name: str, length: int, train: bool, device: str = "cuda") -> dict:
    """Milliseconds of one pass, the median of five after two, and the peak of what torch allocates."""
    options = argparse.Namespace(heads=8, size=64)
    with torch.device(device), torch.set_grad_enabled(train):
        run = attention(name, torch.randn(1, length, 512), options, train)
        times = []
        torch.cuda.reset_peak_memory_stats()
        for _ in range(7):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            out = run()
            if train:
                out.sum().backward()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end))
        peak = torch.cuda.max_memory_allocated() / 2**20
    return {"attention": name, "length": length, "train": train, "ms": sorted(times[2:])[2], "MiB": round(peak)}


def timings() -> list[dict]:
    rows = []
    for train, lengths in ((False, (1024, 4096, 16384, 65536)), (True, (1024, 4096))):
        for length in lengths:
            for name in ["none", *OURS, *(DENSE if length <= 4096 else [])]:
                try:
                    rows.append(timing(name, length, train))
                except Exception as error:
                    rows.append({"attention": name, "length": length, "train": train, "error": str(error)[:80]})
                torch.cuda.empty_cache()
    return rows


def main() -> None:
    if not torch.cuda.is_available():
        print("no CUDA device: nothing checked")
        return
    print(torch.cuda.get_device_name(), torch.__version__)
    rows = []
    for facts in capabilities():
        kind = None if facts["bias"] == "-" else facts["bias"]
        for implementation in implementations(kind):
            for dtype in (torch.float32, torch.bfloat16):
                try:
                    rows.append(parity(facts["encoding"], implementation, dtype))
                except Exception as error:
                    rows.append(
                        {
                            "encoding": facts["encoding"],
                            "implementation": implementation,
                            "dtype": str(dtype)[6:],
                            "error": str(error)[:80],
                        }
                    )
    print(pd.DataFrame(rows).to_markdown(index=False))
    print(pd.DataFrame(timings()).to_markdown(index=False))


if __name__ == "__main__":
    main()
