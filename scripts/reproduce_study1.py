#!/usr/bin/env python
"""Reproduce study 1: train its arms, analyse every run, judge the claims. Called again it goes on where it stopped."""

import argparse

from hf_posgen.reproduce.study1 import reproduce


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", required=True, help="the folder of the reproduction")
    options.add_argument("--seeds", type=int, help="how many seeds per arm (default: 10; below 6 nothing is judged)")
    options.add_argument("--panels", nargs="+", help="a part of the study, by panel")
    options.add_argument("--arms", nargs="+", help="a part of the study, by arm")
    options.add_argument("--workers", type=int, help="runs at a time (default: one per core)")
    given = options.parse_args()
    verdicts = reproduce(given.out, seeds=given.seeds, panels=given.panels, arms=given.arms, workers=given.workers)
    for verdict in verdicts:
        print(f"{verdict.claim:5} {verdict.verdict:12} {verdict.said}\n{'':18} {verdict.why}")
    print(f"\n{given.out}/verdicts.md, {given.out}/results.md, {given.out}/figures")


if __name__ == "__main__":
    main()
