"""Verdicts as a Markdown page: one table of all, then each claim's threshold and what was measured, in tables."""

from pathlib import Path

import pandas as pd

from .verdicts import Verdict

INTERVAL = {"n", "mean", "low", "high"}
LABELS = {
    "fitted": "seeds that fit",
    "seeds": "seeds",
    "n": "seeds",
    "p": "p",
    "underpowered": "too few pairs to test",
    "difference": "mean difference",
    "pairs": "pairs of seeds",
    "share_at_least": "share that fits, at least",
    "share_at_most": "share that fits, at most",
    "first_summed_beyond": "first pasted token, summed beyond",
    "first_accuracy": "first pasted token",
    "token_accuracy": "all pasted tokens",
    "P_invalid": "why P is not valid",
    "P_overshooting_by_5": "P of overshooting by 5",
    "P_of_2gram_baseline": "P of the 2-gram baseline",
    "range_of_mean": "range over seeds, of the mean",
    "null": "null: a key drawn at random",
}


def verdict_page(title: str, how: str, verdicts: list[Verdict], figures: list[Path]) -> str:
    """Return the page. how: a paragraph that says how to read it. figures: files in the folder `figures` beside it."""
    overview = [
        {"claim": v.claim, "statement": v.statement, "verdict": f"**{v.verdict}**", "reason": v.reason}
        for v in verdicts
    ]
    link = "All numbers, as JSON: [verdicts.json](verdicts.json)."
    lines = [f"# {title}", "", how, "", link, "", _markdown(overview)]
    for verdict in verdicts:
        lines += ["", f"## {verdict.claim}: {verdict.verdict}", "", verdict.statement, ""]
        lines += [f"Threshold: {verdict.threshold}."]
        lines += tables(measured(verdict.numbers)) or ["", "Nothing was measured."]
    lines += [""] + [f"![{path.stem}](figures/{path.name})" for path in figures]
    return "\n".join(lines) + "\n"


def measured(numbers):
    """Return numbers without those of nothing: contrasts of no pairs, means over no seeds, arms that weren't run."""
    if not isinstance(numbers, dict):
        return numbers
    if numbers.get("n", numbers.get("pairs")) == 0:
        return {}
    kept = {key: measured(value) for key, value in numbers.items()}
    return {key: value for key, value in kept.items() if value != {}}


def tables(numbers: dict, caption: str = "") -> list[str]:
    """Return nested numbers as lines of Markdown: a table for every group of entries that hold numbers themselves, under
    the path to it; what is nested in several entries of a group is a group again."""
    single = {key: value for key, value in numbers.items() if _is_value(value)}
    rows = {key: value for key, value in numbers.items() if key not in single and any(map(_is_value, value.values()))}
    lines = []
    if single:
        lines += _captioned(caption, [{"": _label(key), "value": _text(value)} for key, value in single.items()])
    if rows:
        lines += _captioned(caption, [{"": _label(key)} | _cells(value) for key, value in rows.items()])
    groups = {key: value for key, value in numbers.items() if key not in single and key not in rows}
    for key, entry in rows.items():
        for name, nested in entry.items():
            if not _is_value(nested):
                groups.setdefault(name, {})[key] = nested
    for key, group in groups.items():
        lines += tables(group, f"{caption}, {_label(key)}".removeprefix(", "))
    return lines


def _captioned(caption: str, lines: list[dict]) -> list[str]:
    return ["", *([f"{caption[0].upper()}{caption[1:]}:", ""] if caption else []), _markdown(lines)]


def _markdown(lines: list[dict]) -> str:
    escaped = [{_escaped(key): _escaped(str(value)) for key, value in line.items()} for line in lines]
    table = pd.DataFrame(escaped).fillna("")
    empty = [column for column in table.columns[1:] if (table[column] == "").all()]
    return table.drop(columns=empty).to_markdown(index=False, disable_numparse=True)


def _escaped(text: str) -> str:
    return text.replace("|", r"\|")


def _is_value(value) -> bool:
    """Whether something is one cell of a table: a number, a text, a list, or a mean with its interval."""
    return not isinstance(value, dict) or set(value) == INTERVAL


def _cells(entry: dict) -> dict:
    """Return an entry as the cells of one row: a mean or difference with its interval, the rest as it is."""
    cells, interval = {}, {"low", "high"} <= set(entry)
    for key, value in entry.items():
        if not _is_value(value) or (interval and key in ("low", "high")):
            continue
        if interval and key in ("mean", "difference"):
            value = {"mean": value, "low": entry["low"], "high": entry["high"]}
        cells[_label(key)] = _text(value)
    return cells


def _label(key: str) -> str:
    return LABELS.get(key, str(key).replace("_", " "))


def _text(value) -> str:
    if isinstance(value, dict):
        if value["mean"] is None:
            return ""
        interval = "" if value["low"] is None else f" [{_text(value['low'])}, {_text(value['high'])}]"
        return f"{_text(value['mean'])}{interval}"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
