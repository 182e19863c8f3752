"""What a sweep shows at its end: the summary, where the report is, how to load the best run, and what failed."""

from pathlib import Path

from ..run.folder import RunFolder
from ..sweep.selection import validation_score
from ..sweep.trial import Failure


def best_run(out: Path, rows: list[dict]) -> str | None:
    """Return the run that did best in validation (token accuracy, then nats per token) among those that fit."""
    scores = {}
    for run in dict.fromkeys(row["run"] for row in rows if row["fit"]):
        if validations := RunFolder(out / run).validations():
            scores[run] = validation_score(validations[-1])
    return max(scores, key=scores.get) if scores else None


def how_to_load(folder: Path) -> str:
    """Return the lines of Python that open a run's checkpoint."""
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"model = AutoModelForCausalLM.from_pretrained({str(folder)!r}, trust_remote_code=True)\n"
        f"tokenizer = AutoTokenizer.from_pretrained({str(folder)!r}, trust_remote_code=True)"
    )


def print_outcome(out: Path, rows: list[dict], paths, failures: list[Failure], stream=None) -> None:
    """Print what a sweep did. `paths` are the report's (None without rows); `stream` defaults to standard output."""
    from ..report.markdown import summary_tables

    parts = []
    if rows:
        parts += ["\n" + summary_tables(rows), f"\nReport: {paths.markdown}"]
        parts += [f"Figure: {figure}" for figure in paths.figures]
        if best := best_run(out, rows):
            parts.append(f"\nLoad the best checkpoint ({best}):\n{how_to_load((out / best).resolve())}")
    parts += [f"\nFailed: {failure.run}\n{failure.last_lines}" for failure in failures]
    for part in parts:
        print(part, file=stream)
