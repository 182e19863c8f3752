"""What the reproductions share: a part of a sweep, its rows and further ones, a command line."""

import argparse
from collections.abc import Callable
from pathlib import Path

from ..common.files import read_rows, write_rows
from ..evaluation.cells import evaluate_target
from ..evaluation.identity import describe_difference
from ..evaluation.runs import open_run
from ..sweep.run import sweep
from ..tasks import build_task, resolve_task


def part_of(tree: dict, seeds: int | None, panels, arms) -> dict:
    """Return the panels of a sweep cut to some seeds, panels and arms. Raises `ValueError` for a name that isn't there."""
    from ..common.names import unknown

    known = {arm for part in tree.values() for arm in part["arms"]}
    for kind, given, allowed in (("panel", panels, tree), ("arm", arms, known)):
        for name in given or ():
            if name not in allowed:
                raise unknown(kind, name, allowed)
    out = {}
    for name, part in tree.items():
        chosen = {arm: changes for arm, changes in part["arms"].items() if not arms or arm in arms}
        if chosen and (not panels or name in panels):
            out[name] = part | {"arms": chosen, "seeds": part["seeds"][: seeds or None]}
    return out


def trained(tree: dict, out: Path, workers: int | None, quiet: bool | None) -> list[dict]:
    """Return the rows of a sweep, trained as far as it isn't yet. Raises `RuntimeError` where a run failed."""
    rows, _, failures = sweep(tree, out, workers=workers, quiet=quiet)
    if failures:
        raise RuntimeError(f"{len(failures)} runs failed, the first: {failures[0].run}: {failures[0].last_lines}")
    return rows


def evaluate_again(folder: Path, name: str, changes: dict, *, fresh: int = 0, **options) -> list[dict]:
    """Return rows of a finished run for its task with some changes, kept in the folder's `name`.jsonl. options: those of
    `evaluate_target`. Kept rows of other weights, another task or other counts are measured anew."""
    file, target = folder / f"{name}.jsonl", open_run(folder)
    task = build_task(resolve_task(target.task) | changes)
    target = target.with_task(task, seed=target.measurement.seed + fresh)
    rows, count = read_rows(file), options.get("count") or target.measurement.count
    if not rows or describe_difference(rows, target.facts) or {row["count"] for row in rows} != {count}:
        rows = evaluate_target(target, **options)
        write_rows(file, rows)
    return rows


def accuracy_cell(mean: dict) -> str:
    """Return a mean with its interval, as accuracies are shown."""
    if mean["mean"] is None:
        return ""
    interval = "" if mean["low"] is None else f" [{max(0, mean['low']):.2f}, {min(1, mean['high']):.2f}]"
    return f"{mean['mean']:.2f}{interval}"


def script(reproduce: Callable, text: str, seeds: str, options: Callable | None = None) -> None:
    """Run a reproduction from the command line. text: its help; seeds: the help of that option; options(parser): adds
    more."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--out", required=True, help="the folder of the reproduction")
    parser.add_argument("--seeds", type=int, help=seeds)
    parser.add_argument("--panels", nargs="+", help="a part of the study, by panel")
    parser.add_argument("--arms", nargs="+", help="a part of the study, by arm")
    parser.add_argument("--workers", type=int, help="runs at a time (default: one per GPU, else one per core)")
    if options:
        options(parser)
    given = vars(parser.parse_args())
    out = given.pop("out")
    for verdict in reproduce(out, **given):
        print(f"{verdict.claim:5} {verdict.verdict:17} {verdict.statement}\n{'':23} {verdict.reason}")
    print(f"\n{out}/verdicts.md, {out}/results.md, {out}/figures")
