"""Write the tables of README.md from the registries: `python scripts/update_readme.py`."""

from pathlib import Path

import pandas as pd

from hf_posgen.cli import LISTS

README = Path(__file__).parent.parent / "README.md"
COLUMNS = ["encoding", "acts on", "bias", "causal", "shift-invariant", "kernels", "mixers", "paper"]


def tables() -> dict[str, str]:
    """{marker: table} as Markdown."""
    frames = {name: pd.DataFrame(LISTS[name]()) for name in ("encodings", "tasks", "presets")}
    frames["encodings"] = frames["encodings"][COLUMNS].replace({True: "yes", False: "no"})
    return {name: frame.to_markdown(index=False, disable_numparse=True) for name, frame in frames.items()}


def updated(text: str) -> str:
    """README.md with its tables as the registries say."""
    for name, table in tables().items():
        before, rest = text.split(f"<!-- {name} -->")
        after = rest.split(f"<!-- /{name} -->")[1]
        text = f"{before}<!-- {name} -->\n\n{table}\n\n<!-- /{name} -->{after}"
    return text


if __name__ == "__main__":
    README.write_text(updated(README.read_text()))
