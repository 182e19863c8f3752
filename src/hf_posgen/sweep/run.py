"""Many runs: train and evaluate what a sweep file lists, each in a run folder, then write one report."""

from pathlib import Path

from ..common.files import write_rows
from ..run.cost import CORE, GPU, expected_seconds, training_bytes
from .executors.registry import known_executor
from .folder import SweepFolder
from .selection import best_rates, selection_trials
from .spec import dump_sweep, parse_sweep, read_sweep, sweep_runs
from .trial import Trial


def sweep(
    source: str | dict,
    out: str | Path,
    *,
    executor: str = "local",
    quiet: bool | None = None,
    **options,
):
    """Train and evaluate every trial that isn't done, then report; return (rows, ReportPaths, failures).

    source: a preset's name, a YAML file, or its tree. A trial that fails doesn't stop the others. Calling it again skips
    what is done and resumes what is not; a sweep that has grown (more seeds, more arms) goes on in the same folder.
    options: the executor's (see executors/). Raises `ValueError` for a sweep that can't be, before anything runs, and for
    a folder that holds something else.
    """
    from ..report.markdown import report

    run_trials = known_executor(executor)
    tree, out = read_sweep(source) if isinstance(source, str) else source, Path(out)
    spec, runs = parse_sweep(tree), sweep_runs(tree)  # all of them checked before the first one starts
    selection, folder = selection_trials(spec, out), SweepFolder(out)
    folder.claim(dump_sweep(tree))
    failures = run_trials([trial for trial in selection if not trial.done], quiet=quiet, **options)
    rates = best_rates(selection)
    trials = [Trial(run, out) for run in (sweep_runs(tree, rates) if rates else runs)]
    failures += run_trials([trial for trial in trials if not trial.done], quiet=quiet, **options)
    rows = [row for trial in trials for row in trial.files.rows()]
    if not rows:
        return rows, None, failures
    write_rows(folder.results, rows)
    return rows, report(rows, out, spec.name, spec.contrasts), failures


def dry_run(source: str, out: str | Path, flops: float | None = None) -> list[str]:
    """Write each trial's run file; return lines for a shell: the command that would run each, an ordinary launch for any
    scheduler, with an estimate of its time and memory, and their sum as a comment.

    flops: operations per second to count with (default: see `expected_seconds`)."""
    tree, out = read_sweep(source), Path(out)
    trials = selection_trials(parse_sweep(tree), out) or [Trial(run, out) for run in sweep_runs(tree)]
    waiting = [trial for trial in trials if not trial.done]
    SweepFolder(out).claim(dump_sweep(tree))
    for trial in waiting:
        trial.write()
    costs = [(expected_seconds(trial.run, flops), training_bytes(trial.run)) for trial in waiting]
    lines = [
        f"{trial.shell_command()}  # about {format_seconds(seconds)}, {size / 2**30:.2g} GiB"
        for trial, (seconds, size) in zip(waiting, costs, strict=True)
    ]
    return [_summary(waiting, costs, flops), *lines] if waiting else []


def _summary(waiting: list[Trial], costs: list[tuple[float, float]], flops: float | None) -> str:
    rate = flops or (CORE if all(trial.run.train.cpu for trial in waiting) else GPU)
    basis = "given" if flops else "a CPU core, roughly" if rate == CORE else "an assumption; --flops sets another"
    seconds, size = format_seconds(sum(seconds for seconds, _ in costs)), max(size for _, size in costs) / 2**30
    return (
        f"# {len(waiting)} runs, one after the other about {seconds} at {rate:.1g} operations per second ({basis}); "
        f"at most about {size:.2g} GiB of weights and activations each, beside what a process takes (on the CPU .5)"
    )


def format_seconds(seconds: float) -> str:
    """Write a duration in the unit that reads best."""
    for unit, length in (("days", 86400), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
