"""The explorable page of a report: one file, no network. What it shows is in templates/report.{html,css,js}."""

import html
import json
import math
from colorsys import hls_to_rgb, rgb_to_hls
from importlib.resources import files
from pathlib import Path

from ..common.files import write_text
from ..results.columns import BASELINES, SCORES, SPLITS, label
from ..results.panel import Panel
from ..results.statistics import t_quantiles
from .captions import facts
from .style import styles

PLAIN = ("seed", "length", "distance", "count", "chance")


def write_page(panels: list[Panel], out: Path, title: str) -> Path:
    """Write out/report.html; return its path."""
    text = page([describe(panel) for panel in panels], title)
    write_text(out / "report.html", text)
    return out / "report.html"


def page(described: list[dict], title: str) -> str:
    """The page from described panels: style, code and data in one text."""
    here = files("hf_posgen.report").joinpath("templates")
    data = json.dumps(
        {"panels": described, "t": t_quantiles(), "viridis": _viridis()}, separators=(",", ":"), allow_nan=False
    )
    parts = {
        "title": html.escape(title),
        "css": here.joinpath("report.css").read_text().strip(),
        "js": here.joinpath("report.js").read_text().strip(),
        "data": data.replace("<", "\\u003c"),  # no name of an arm can end the script
    }
    text = here.joinpath("report.html").read_text()
    before, *rest = text.split("{{")
    return before + "".join(parts[one.split("}}", 1)[0]] + one.split("}}", 1)[1] for one in rest)


def describe(panel: Panel) -> dict:
    """What the page needs of a panel, with its rows as lists in the order of `columns`."""
    arms, fits = panel.arms, panel.fits
    ordered = panel.table.sort_values("arm", key=lambda names: names.map(list(arms).index), kind="stable")
    look, shown = styles(arms), [key for key in SCORES if panel.has(key)]
    present = ordered["split"].unique()
    splits = sorted(present, key=lambda split: SPLITS.index(split) if split in SPLITS else len(SPLITS))
    columns, rows = _columns(panel, ordered, list(arms), splits, shown)
    return {
        "title": panel.title,
        "facts": facts(panel),
        "axes": panel.axes,
        "shown": panel.metrics[0],
        "metrics": [{"key": key, "label": label(key), "share": SCORES[key].is_share} for key in shown],
        "ranges": {axis: panel.trained_ranges(axis) for axis in ("length", "distance")},
        "references": {key: _beside(key, panel) for key in shown},
        "splits": splits,
        "arms": [
            {"name": arm, "fitted": fits[arm][0], "seeds": fits[arm][1], "trained": _trained(panel, arm)}
            | {"colour": look[arm].colour, "dark": on_dark(look[arm].colour)}
            | {"marker": look[arm].marker, "variant": look[arm].variant}
            for arm in arms
        ],
        "columns": columns,
        "rows": rows,
    }


def _columns(panel: Panel, table, arms: list[str], splits: list[str], shown: list[str]) -> tuple[list[str], list[list]]:
    """Names and rows: whole numbers for names, five digits for scores, None for what isn't there."""
    columns = {
        "arm": [arms.index(arm) for arm in table["arm"]],
        "split": [splits.index(split) for split in table["split"]],
        "fit": [int(fit) for fit in table["fit"]],
        **{f"on_{axis}": panel.on_axis(axis)[table.index].astype(int).tolist() for axis in ("length", "distance")},
        "refs": [_known(*pair) for pair in zip(table["baselines"], table["chance"], table["ceiling"], strict=True)],
    }
    for name in (*PLAIN, *(f"{key}{end}" for key in shown for end in ("", "_low", "_high"))):
        values = table[name].tolist() if name in table else [None] * len(table)
        columns[name] = [_short(value) for value in values]
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def _beside(metric: str, panel: Panel) -> list[str]:
    """Return the names of the reference lines that compare with a metric."""
    points = ["chance", "ceiling"] if SCORES[metric].is_share else []
    return points + [BASELINES[key] for key in panel.baseline_keys(metric)]


def _known(baselines, chance: float, ceiling: float) -> dict:
    """The reference points of a row by the names to show."""
    out = {"chance": _short(chance)} | ({"ceiling": _short(ceiling)} if ceiling < 0.999 else {})
    found = baselines if isinstance(baselines, dict) else {}
    return out | {BASELINES[key]: _short(value) for key, value in found.items() if key in BASELINES}


def _short(value):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return int(value) if float(value).is_integer() else round(float(value), 5)


def _trained(panel: Panel, arm: str) -> dict:
    return {axis: [_short(end) for end in panel.trained_range(axis, arm)] for axis in ("length", "distance")}


def on_dark(colour: str) -> str:
    """A colour as seen on a dark page: the same hue, lighter."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = rgb_to_hls(red, green, blue)
    lighter = hls_to_rgb(hue, 0.92 if saturation == 0 else 0.45 + 0.5 * lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in lighter)


def _viridis() -> list[list[int]]:
    from matplotlib import colormaps

    return [[round(255 * part) for part in colormaps["viridis"](i / 15)[:3]] for i in range(16)]
