"""What the reproductions share: a part of a sweep, its rows and further ones, verdicts as Markdown, a command line."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from ..common.files import read_rows, write_rows
from ..evaluation.cells import evaluate_target
from ..evaluation.runs import open_run
from ..sweep.run import sweep
from ..tasks import build_task, resolve_task
from .verdicts import Verdict


def part_of(tree: dict, seeds: int | None, panels, arms) -> dict:
    """The panels of a sweep cut to some seeds, panels and arms. Raises `ValueError` for a name that isn't there."""
    from ..common.names import unknown

    known = {arm for part in tree.values() for arm in part["arms"]}
    for kind, given, allowed in (("panel", panels, tree), ("arm", arms, known)):
        for name in given or ():
            if name not in allowed:
                raise unknown(kind, name, allowed)
    out = {}
    for name, part in tree.items():
        mine = {arm: changes for arm, changes in part["arms"].items() if not arms or arm in arms}
        if mine and (not panels or name in panels):
            out[name] = part | {"arms": mine, "seeds": part["seeds"][: seeds or None]}
    return out


def trained(tree: dict, out: Path, workers: int | None, quiet: bool | None) -> list[dict]:
    """The rows of a sweep, trained as far as it isn't yet. Raises `RuntimeError` where a run failed."""
    rows, _, failures = sweep(tree, out, workers=workers, quiet=quiet)
    if failures:
        raise RuntimeError(f"{len(failures)} runs failed, the first: {failures[0].run}: {failures[0].last_lines}")
    return rows


def evaluate_again(folder: Path, name: str, changes: dict, *, fresh: int = 0, **options) -> list[dict]:
    """Rows of a finished run for its task with some changes, kept in the folder's `name`.jsonl. options: those of
    `evaluate_target`."""
    file = folder / f"{name}.jsonl"
    if not file.is_file():
        target = open_run(folder)
        task = build_task(resolve_task(target.task) | changes)
        target = target.with_task(task, seed=target.measurement.seed + fresh)
        write_rows(file, evaluate_target(target, **options))
    return read_rows(file)


def cell(found: dict) -> str:
    """A mean with its interval, as accuracies are shown."""
    if found["mean"] is None:
        return ""
    interval = "" if found["low"] is None else f" [{max(0, found['low']):.2f}, {min(1, found['high']):.2f}]"
    return f"{found['mean']:.2f}{interval}"


def markdown(title: str, how: str, verdicts: list[Verdict], figures: list[Path]) -> str:
    """All verdicts in a table, then each with its threshold and numbers, then the figures."""
    short = [{"claim": v.claim, "said": v.said, "verdict": f"**{v.verdict}**", "why": v.why} for v in verdicts]
    lines = [f"# {title}", "", how, "", pd.DataFrame(short).to_markdown(index=False)]
    for verdict in verdicts:
        lines += ["", f"## {verdict.claim}: {verdict.verdict}", "", verdict.said, ""]
        lines += [f"Threshold: {verdict.threshold}.", ""]
        measured = _measured(verdict.numbers)
        lines += ["```json", json.dumps(measured, indent=1), "```"] if measured else ["Nothing was measured."]
    lines += [""] + [f"![{path.stem}](figures/{path.name})" for path in figures]
    return "\n".join(lines) + "\n"


def _measured(numbers):
    """Without what stands for nothing: contrasts of no pairs, sums over no seeds, arms that weren't run."""
    if not isinstance(numbers, dict):
        return numbers
    if numbers.get("n", numbers.get("pairs")) == 0:
        return {}
    found = {key: _measured(value) for key, value in numbers.items()}
    return {key: value for key, value in found.items() if value != {}}


def script(reproduce: Callable, text: str, seeds: str, options: Callable | None = None) -> None:
    """The command line of a reproduction. seeds: what is said of that option. options(parser): adds its own."""
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
        print(f"{verdict.claim:5} {verdict.verdict:12} {verdict.said}\n{'':18} {verdict.why}")
    print(f"\n{out}/verdicts.md, {out}/results.md, {out}/figures")
