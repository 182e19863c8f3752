"""Train a run: the same as `posgen train`. On several processes: accelerate launch scripts/train.py run.yaml --out DIR"""

import sys

from hf_posgen.cli.dispatch import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
