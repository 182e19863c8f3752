#!/usr/bin/env python
"""Reproduce study 2: train its arms, judge the claims. Called again it goes on where it stopped.

At small scale part a (full and selective copies at unseen delays) is for two CPU cores; b and size take longer. At the
paper's scale it needs GPUs: `posgen sweep study2-a --dry-run` says how many hours.
"""

from hf_posgen.reproduce.steps import script
from hf_posgen.reproduce.study2.run import PARTS, SCALES, reproduce


def options(parser) -> None:
    parser.add_argument("--scale", choices=SCALES, default="small", help="small (default) or paper")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["a"], help="default: a")
    parser.add_argument("--study1", help="the folder of study 1's reproduction, to stand beside the 2 x 2 figure")


if __name__ == "__main__":
    script(reproduce, __doc__, "how many seeds per arm (default: the preset's; below 7 no contrast is judged)", options)
