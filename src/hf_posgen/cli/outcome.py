"""What a sweep shows at its end: the summary, where the report is, each arm's checkpoint, and what failed."""

from pathlib import Path

from ..run.folder import RunFolder
from ..sweep.selection import validation_score
from ..sweep.trial import Failure


def checkpoints(out: Path, rows: list[dict]) -> dict[tuple[str, str], Path]:
    """Return {(panel, arm): run folder}: of each arm the seed that did best in validation (token accuracy, then nats per
    token) among those that fit. In distribution, that is: it says nothing about lengths and distances beyond."""
    best: dict[tuple[str, str], tuple] = {}
    for panel, arm, run in dict.fromkeys((row["panel"], row["arm"], row["run"]) for row in rows if row["fit"]):
        if validations := RunFolder(out / run).validations():
            candidate = (validation_score(validations[-1]), out / run)
            if (panel, arm) not in best or candidate[0] > best[panel, arm][0]:
                best[panel, arm] = candidate
    return {key: folder for key, (_, folder) in best.items()}


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
        parts += _checkpoint_lines(checkpoints(out, rows))
    parts += [f"\nFailed: {failure.run}\n{failure.last_lines}" for failure in failures]
    for part in parts:
        print(part, file=stream)


def _checkpoint_lines(found: dict[tuple[str, str], Path]) -> list[str]:
    if not found:
        return []
    names = {key: " ".join(filter(None, key)) for key in found}
    width = max(map(len, names.values()))
    lines = [f"  {names[key]:{width}}  {folder}" for key, folder in found.items()]
    head = "\nCheckpoints: of each arm that fit, the seed with the best validation (the tables above say what holds beyond)"
    return [head, *lines, f"\nOpen one:\n{how_to_load(next(iter(found.values())).resolve())}"]
