"""Write the tables of README.md and docs/reference.md from the registries: `python scripts/update_readme.py`."""

from pathlib import Path

import pandas as pd

from hf_posgen.cli.dispatch import LISTS

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
    return {name: frame.to_markdown(index=False, disable_numparse=True) for name, frame in frames.items()}


def updated(text: str) -> str:
    """A text with its marked tables as the registries say."""
    for name, table in tables().items():
        if f"<!-- {name} -->" in text:
            before, rest = text.split(f"<!-- {name} -->")
            after = rest.split(f"<!-- /{name} -->")[1]
            text = f"{before}<!-- {name} -->\n\n{table}\n\n<!-- /{name} -->{after}"
    return text


if __name__ == "__main__":
    for file in FILES:
        (ROOT / file).write_text(updated((ROOT / file).read_text()))
