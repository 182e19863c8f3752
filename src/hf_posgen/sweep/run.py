"""Many runs: arms × seeds of one or more studies, each a run folder, then one report.

A sweep file:

    name: my-sweep
    panels:
      study1:                       # a study: what its runs share, and how its arms differ
        base: {task: {...}, model: {...}, train: {...}}
        arms: {rope: {model: {position_encoding: rope}}, learned: {...}}
        grid: {model.hidden_size: [32, 64]}     # optional: every arm with every combination
        seeds: [0, 1]
        learning_rates: [3e-4, 1e-3]            # optional: chosen for each arm on validation,
        selection_seeds: [100]                  # with seeds that are not used afterwards
    contrasts: [[rope, learned]]                # optional: the differences that the report tests (default: all pairs)
"""

import itertools
import sys
from importlib.resources import files
from pathlib import Path

import yaml

from ..common.files import read_rows, write_rows, write_text
from ..common.names import pairs_of_arms, unknown
from ..run.build import RunConfig, build_run, merge, read_yaml
from ..run.cost import CORE, GPU, expected_seconds, training_bytes
from ..run.tree import known
from .executors.registry import EXECUTORS
from .selection import best_rates, selection_points, validation_score
from .trial import Failure, Point

PANEL_KEYS = ("base", "arms", "grid", "seeds", "learning_rates", "selection_seeds")


def presets() -> dict[str, Path]:
    """{name: file} of the sweeps that come with the package."""
    folder = files("hf_posgen.sweep").joinpath("presets")
    return {Path(p.name).stem: p for p in sorted(folder.iterdir(), key=str) if p.name.endswith(".yaml")}


def read_sweep(source: str) -> dict:
    """A preset by name, or a YAML file. Raises `ValueError` for neither."""
    if source in presets():
        return yaml.safe_load(presets()[source].read_text())
    if Path(source).suffix in (".yaml", ".yml"):
        tree = read_yaml(source)
        if "panels" not in tree and {"task", "model", "train"} & set(tree):
            raise ValueError(f"{source} is one run, and a sweep has panels of many: posgen train {source} --out DIR")
        return tree
    raise unknown("preset", source, [*presets(), "or a YAML file"])


def panels(tree: dict) -> dict[str, dict]:
    """A sweep's panels, checked. Raises `ValueError` for an unknown key, no panels, no arms or no seeds."""
    known("", tree, ("name", "panels", "contrasts"))
    out = known("panels.", tree.get("panels") or {}, list(tree.get("panels") or {}))
    for name, part in out.items():
        known(f"panels.{name}.", part, PANEL_KEYS)
        if not part.get("arms") and not part.get("grid"):
            raise ValueError(f"panel {name!r} of the sweep needs at least one arm, or a grid")
        seeds = part.get("seeds", [0])
        if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in seeds):
            raise ValueError(f"panels.{name}.seeds is {seeds!r}; it must be a list of whole numbers")
    if not out:
        raise ValueError("the sweep has no panels")
    contrasts(tree, out)
    return out


def contrasts(tree: dict, parts: dict[str, dict]) -> list[tuple[str, str]] | None:
    """The pairs of arms that the sweep declares, each of which stands in a panel; None where it declares none."""
    if "contrasts" not in tree:
        return None
    arms = [set(arms_of(part)) for part in parts.values()]
    pairs = pairs_of_arms(tree["contrasts"], dict.fromkeys(arm for part in parts.values() for arm in arms_of(part)))
    for pair in pairs:
        if not any(set(pair) <= panel for panel in arms):
            raise ValueError(f"contrast {pair[0]}:{pair[1]}: no panel of the sweep holds both arms")
    return pairs


def arms_of(panel: dict) -> dict[str, dict]:
    """{arm: a run's tree without seed}: every named arm with every combination of the grid."""
    arms, grid = panel.get("arms") or {"": {}}, panel.get("grid") or {}
    out = {}
    for name, changes in arms.items():
        for values in itertools.product(*grid.values()):
            tree, parts = merge(panel.get("base") or {}, changes or {}), [name] if name else []
            for key, value in zip(grid, values, strict=True):
                change = value
                for part in reversed(key.split(".")):
                    change = {part: change}
                tree = merge(tree, change)
                parts.append(_value_name(key, value))
            out["-".join(parts)] = tree
    return out


def _value_name(key: str, value) -> str:
    """A component by its name, another key with its value: "alibi", "hidden_size=64"."""
    if isinstance(value, dict) and "name" in value:
        rest = [f"{k}={v}" for k, v in value.items() if k != "name"]
        return "-".join([value["name"], *rest])
    return value if isinstance(value, str) else f"{key.split('.')[-1]}={value}"


def points(tree: dict, rates: dict | None = None) -> list[RunConfig]:
    """Every run of a sweep, with the learning rates chosen for some (panel, arm). Raises `ValueError` for a sweep that
    can't be."""
    out = []
    for panel, part in panels(tree).items():
        for arm, changes in arms_of(part).items():
            if (panel, arm) in (rates or {}):
                changes = merge(changes, {"train": {"learning_rate": rates[panel, arm]}})
            out += [build_run(changes | {"seed": seed, "arm": arm, "panel": panel}) for seed in part.get("seeds", [0])]
    return out


def sweep(
    source: str | dict,
    out: str | Path,
    *,
    executor: str = "local",
    quiet: bool | None = None,
    **options,
):
    """Train and evaluate every point that isn't done, then report; returns (rows, ReportPaths, failures).

    A point that fails doesn't stop the others. Calling it again skips what is done and resumes what is not. `options` are
    the executor's (see `executors.py`). Raises `ValueError` for a sweep that can't be, or a folder that holds another.
    """
    from ..report.markdown import report

    run_points = known_executor(executor)
    tree, out = read_sweep(source) if isinstance(source, str) else source, Path(out)
    selection = selection_points(panels(tree), arms_of, out)
    runs = points(tree)  # all of them checked before the first one starts
    _claim(out, tree)
    failures = run_points([point for point in selection if not point.done], quiet=quiet, **options)
    rates = best_rates(selection)
    runs = points(tree, rates) if rates else runs
    mine = [Point(run, out) for run in runs]
    failures += run_points([point for point in mine if not point.done], quiet=quiet, **options)
    rows = [row for point in mine for row in read_rows(point.folder / "results.jsonl")]
    if not rows:
        return rows, None, failures
    write_rows(out / "results.jsonl", rows)
    return rows, report(rows, out, tree.get("name", "Sweep"), contrasts(tree, panels(tree))), failures


def known_executor(name: str):
    """What runs the points, by name. Raises `ValueError` for an unknown one."""
    if name not in EXECUTORS:
        raise unknown("executor", name, EXECUTORS)
    return EXECUTORS[name]


def _claim(out: Path, tree: dict) -> None:
    """Refuse a folder that holds something else; keep the sweep's own text in it."""
    if out.exists() and any(out.iterdir()) and not (out / "sweep.yaml").is_file():
        raise ValueError(f"{out} is not empty and holds no sweep: choose another folder")
    write_text(out / "sweep.yaml", yaml.safe_dump(tree, sort_keys=False))


def dry_run(source: str, out: str | Path, flops: float | None = None) -> list[str]:
    """Write each point's run.yaml, and return lines for a shell: the command that would run each, an ordinary launch for
    any scheduler, with a guess at its time and memory, and the sum as a comment. flops: operations per second to count
    with (default: see `expected_seconds`)."""
    tree, out = read_sweep(source), Path(out)
    selection = selection_points(panels(tree), arms_of, out)
    waiting = [point for point in selection or [Point(run, out) for run in points(tree)] if not point.done]
    _claim(out, tree)
    for point in waiting:
        point.write()
    costs = [(expected_seconds(point.run, flops), training_bytes(point.run)) for point in waiting]
    lines = [
        f"{point.shell_command()}  # about {said_seconds(seconds)}, {size / 2**30:.2g} GiB"
        for point, (seconds, size) in zip(waiting, costs, strict=True)
    ]
    return [_sum(waiting, costs, flops), *lines] if waiting else []


def _sum(waiting: list[Point], costs: list[tuple[float, float]], flops: float | None) -> str:
    rate = flops or (CORE if all(point.run.train.cpu for point in waiting) else GPU)
    what = "given" if flops else "a CPU core, roughly" if rate == CORE else "an assumption; --flops says another"
    seconds, size = said_seconds(sum(seconds for seconds, _ in costs)), max(size for _, size in costs) / 2**30
    return (
        f"# {len(waiting)} runs, one after the other about {seconds} at {rate:.1g} operations per second ({what}); "
        f"at most about {size:.2g} GiB of weights and activations each, beside what a process takes (on the CPU .5)"
    )


def said_seconds(seconds: float) -> str:
    """In the unit that reads best."""
    for unit, length in (("days", 86400), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def best_run(out: Path, rows: list[dict]) -> str | None:
    """The run that did best in validation (token accuracy, then nats per token) among those that fit."""
    scores = {}
    for run in dict.fromkeys(row["run"] for row in rows if row["fit"]):
        checks = [line for line in read_rows(out / run / "train.jsonl") if line.get("split") == "validation"]
        if checks:
            scores[run] = max(map(validation_score, checks[-1:]))
    return max(scores, key=scores.get) if scores else None


def how_to_load(folder: Path) -> str:
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"model = AutoModelForCausalLM.from_pretrained({str(folder)!r}, trust_remote_code=True)\n"
        f"tokenizer = AutoTokenizer.from_pretrained({str(folder)!r}, trust_remote_code=True)"
    )


def print_outcome(out: Path, rows, paths, failures: list[Failure], stream=None) -> None:
    """What a sweep shows at its end."""
    from ..report.markdown import summary_tables

    say = lambda *text: print(*text, file=stream or sys.stdout)  # noqa: E731
    if rows:
        say("\n" + summary_tables(rows))
        say(f"\nReport: {paths.markdown}")
        for figure in paths.figures:
            say(f"Figure: {figure}")
        best = best_run(out, rows)
        if best:
            say(f"\nLoad the best checkpoint ({best}):\n{how_to_load((out / best).resolve())}")
    for failure in failures:
        say(f"\nFailed: {failure.run}\n{failure.last_lines}")
