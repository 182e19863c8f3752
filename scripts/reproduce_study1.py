#!/usr/bin/env python
"""Reproduce study 1: train its arms, analyse every run, judge the claims. Called again it goes on where it stopped."""

from hf_posgen.reproduce.steps import script
from hf_posgen.reproduce.study1.run import reproduce

if __name__ == "__main__":
    script(reproduce, __doc__, "how many seeds per arm (default: 10; below 6 nothing is judged)")
