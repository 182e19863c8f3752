"""How long `posgen --help` takes, beside importing the package: python scripts/benchmark_startup.py"""

import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "posgen --help": ["-m", "hf_posgen", "--help"],
    "posgen train --help": ["-m", "hf_posgen", "train", "--help"],
    "import hf_posgen": ["-c", "import hf_posgen"],
}


def seconds(arguments: list[str], times: int = 5) -> float:
    """The median."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return sorted(taken)[times // 2]


if __name__ == "__main__":
    for name, arguments in COMMANDS.items():
        print(f"{name:22} {seconds(arguments):6.2f} s")
