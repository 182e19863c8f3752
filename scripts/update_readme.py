"""Write the tables of README.md and docs/reference.md, and docs/analyses.md, from the registries and their docstrings:
`python scripts/update_readme.py`."""

from pathlib import Path

import pandas as pd

from hf_posgen.analysis.registry import ANALYSES, definition
from hf_posgen.cli.dispatch import LISTS
from hf_posgen.cli.lists import task_tables

ROOT = Path(__file__).parent.parent
FILES = ("README.md", "docs/reference.md")


def tables() -> dict[str, str]:
    """{marker: table} as Markdown: whole ones for the reference, narrow ones (`-short`) for the README."""
    frames = {name: pd.DataFrame(rows()).replace({True: "yes", False: "no"}) for name, rows in LISTS.items()}
    encodings = frames["encodings"].groupby("acts on", sort=False)["encoding"].agg(", ".join).reset_index()
    frames["encodings-short"] = encodings.rename(columns={"encoding": "encodings"})
    frames["tasks-short"] = frames["tasks"][["task", "what"]]
    frames["presets-short"] = frames["presets"][["preset", "runs"]]
    frames["tasks"] = frames["tasks"][["task", "configurations"]]
    texts = {name: frame.to_markdown(index=False, disable_numparse=True) for name, frame in frames.items()}
    return texts | {"parameters": task_tables()}


def updated(text: str) -> str:
    """A text with its marked tables as the registries say."""
    for name, table in tables().items():
        if f"<!-- {name} -->" in text:
            before, rest = text.split(f"<!-- {name} -->")
            after = rest.split(f"<!-- /{name} -->")[1]
            text = f"{before}<!-- {name} -->\n\n{table}\n\n<!-- /{name} -->{after}"
    return text


ANALYSES_PAGE = ROOT / "docs" / "analyses.md"
ABOUT = """\
# What the analyses measure

`posgen analyze RUN` measures a trained checkpoint on sequences of its own task and prints single numbers; all of them are
in `analysis.json`, with a figure of each analysis in `figures/`. Given a sweep's folder, it measures all finished runs. Of
a model without a run, only what its weights alone decide is measured. Numbers of single heads are in the list `heads`; the
terminal shows those of the first. `untrained` is the same model before its first step.

Symbols: L is a length and δ the distance from key to query, both in tokens; k is the distance at which a task's answer
stands; H heads, B sequences, κ a kernel: the mean logit by distance.

An analysis of your own is a module or class with `measure(context)` that ends in `register_analysis`; `--imports` brings it
in, or a run's `imports`. `hf_posgen/analysis/registry.py` says what it consists of.
"""


def analyses_page() -> str:
    """Return the page that defines the numbers of the analyses: their docstrings."""
    sections = [f"## {name}\n\n{definition(name)}\n" for name in ANALYSES]
    return "\n".join([ABOUT, *sections])


if __name__ == "__main__":
    ANALYSES_PAGE.write_text(analyses_page(), encoding="utf-8")
    for file in FILES:
        (ROOT / file).write_text(updated((ROOT / file).read_text(encoding="utf-8")), encoding="utf-8")
