"""The figures of study 2's reproduction."""

from pathlib import Path


def figures(runs, rows, out: Path) -> list[Path]:
    return []
