"""A sweep by one worker and by two, on this machine: wall and processor seconds.

    python scripts/benchmark_sweep.py [--preset quickstart] [--share 0.1] [--workers 1 2]

Every run is shortened to a share of its steps and of its evaluated sequences, so that the start of the workers (a few
seconds for torch) weighs more than in the real sweep. The load before each sweep is printed: where other processes take
the cores, the wall says little, and the processor seconds say what the second worker costs.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import pandas as pd

from hf_posgen.run.build import build_run, to_tree
from hf_posgen.sweep.executors.local import run_locally
from hf_posgen.sweep.spec import read_sweep, sweep_runs
from hf_posgen.sweep.trial import Trial


def shortened(run, share: float):
    """The same run with a share of the steps and of the evaluated sequences."""
    tree = to_tree(run)
    for part, key in (("train", "steps"), ("train", "warmup_steps"), ("evaluation", "count")):
        tree[part][key] = max(1, round(share * tree[part][key]))
    return build_run(tree)


def measured(runs, workers: int) -> dict:
    """One sweep from an empty folder."""
    load, before, start = os.getloadavg()[0], resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        failures = run_locally([Trial(run, Path(folder)) for run in runs], workers=workers, quiet=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if failures:
        raise SystemExit(f"{failures[0].run} failed: {failures[0].last_lines}")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "workers": workers,
        "runs": len(runs),
        "wall s": time.perf_counter() - start,
        "processor s": processor,
        "load before": load,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="quickstart", help="a preset or a YAML file")
    parser.add_argument("--share", type=float, default=0.1, help="of each run's steps and evaluated sequences")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    options = parser.parse_args()
    runs = [shortened(run, options.share) for run in sweep_runs(read_sweep(options.preset))]
    rows = [measured(runs, workers) for workers in options.workers]
    for row in rows:
        row["speed-up"] = rows[0]["wall s"] / row["wall s"]
    print(f"{options.preset}, {options.share:g} of its steps, {os.cpu_count()} cores\n")
    print(pd.DataFrame(rows).to_markdown(index=False, floatfmt=".2f"))


if __name__ == "__main__":
    main()
