"""The explorable page of a report: one file, no network. All its numbers are computed here; templates/ draws them."""

import json
import math
from collections.abc import Sequence
from colorsys import hls_to_rgb, rgb_to_hls
from importlib.resources import files
from pathlib import Path

import pandas as pd
from jinja2 import Environment
from markupsafe import Markup

from ..common.files import write_text
from ..results.aggregate import FEWEST, mean_by
from ..results.columns import AXES, SCORES, SPLITS, label
from ..results.panel import Panel
from ..results.shared import shared_at_points
from ..run.folder import PAGE
from .captions import facts
from .headline_tables import Section
from .style import styles

CELL = ["arm", "split", "length", "distance"]
NUMBERS = ("length", "distance", "mean", "low", "high", "n", "count", "chance")


def write_page(described: list[dict], out: Path, title: str) -> Path:
    """Write out/report.html from described panels; return its path."""
    write_text(out / PAGE, page(described, title))
    return out / PAGE


def page(described: list[dict], title: str) -> str:
    """Return the page of described panels: style, code and data in one text."""
    here = files("hf_posgen.report").joinpath("templates")
    data = json.dumps({"panels": described, "viridis": _viridis()}, separators=(",", ":"), allow_nan=False)
    template = Environment(autoescape=True).from_string(here.joinpath("report.html.jinja").read_text("utf-8"))
    return template.render(
        title=title,
        css=Markup(here.joinpath("report.css").read_text("utf-8").strip()),
        js=Markup(here.joinpath("report.js").read_text("utf-8").strip()),
        data=Markup(data.replace("<", "\\u003c")),  # no name of an arm can end the script
    )


def describe(panel: Panel, sections: Sequence[Section] = ()) -> dict:
    """Return what the page shows of a panel: lines and reference points of every axis and score, cells, and tables."""
    look, shown = styles(panel.arms), [key for key in SCORES if panel.has(key)]
    present = panel.table["split"].unique()
    splits = sorted(present, key=lambda split: SPLITS.index(split) if split in SPLITS else len(SPLITS))
    return {
        "title": panel.title,
        "facts": facts(panel),
        "axes": panel.axes,
        "shown": panel.metrics[0],
        "metrics": [{"key": key, "label": label(key), "share": SCORES[key].is_share} for key in shown],
        "ranges": {axis: panel.trained_ranges(axis) for axis in AXES},
        "splits": splits,
        "arms": [
            {"name": arm, "fitted": panel.fits[arm][0], "seeds": panel.fits[arm][1]}
            | {"trained": {axis: [_short(end) for end in panel.trained_range(axis, arm)] for axis in AXES}}
            | {"colour": look[arm].colour, "dark": on_dark(look[arm].colour)}
            | {"marker": look[arm].marker, "variant": look[arm].variant}
            for arm in panel.arms
        ],
        "lines": {axis: {key: _lines(panel, axis, key, splits) for key in shown} for axis in AXES},
        "references": {axis: {key: _references(panel, axis, key) for key in shown} for axis in AXES},
        "cells": {key: _cells(panel, key) for key in shown},
        "tables": [
            {"title": section.title, "notes": section.notes}
            | (
                {"head": section.table.head, "lines": section.table.lines}
                if section.table
                else {"head": [], "lines": []}
            )
            for section in sections
        ],
    }


def _lines(panel: Panel, axis: str, metric: str, splits: list[str]) -> list[dict]:
    """Return the lines of a curve: an arm's mean over its seeds that fit, from three on; below, each seed; and each seed
    that did not fit. A point says in which splits (bit by bit) its cells lie."""
    rows = shared_at_points(panel.along(axis).dropna(subset=[metric]), axis)
    if rows.empty:
        return []
    rows = rows.assign(mask=[1 << splits.index(split) for split in rows["split"]])
    for name in ("count", f"{metric}_low", f"{metric}_high"):
        rows = rows if name in rows else rows.assign(**{name: math.nan})
    seeds = rows.groupby(["arm", "fit", "seed", axis]).agg(
        value=(metric, "mean"), cells=(metric, "size"), count=("count", "first"), chance=("chance", "mean"),
        mask=("mask", "max"), least=("mask", "min"), low=(f"{metric}_low", "first"), high=(f"{metric}_high", "first"),
    )  # fmt: skip
    seeds = seeds.reset_index().assign(mask=seeds["mask"].to_numpy() | seeds["least"].to_numpy())
    out = []
    for arm in panel.arms:
        own = seeds[seeds["arm"] == arm]
        many = panel.fits[arm][0] >= FEWEST
        for (fit, seed), run in own[~(own["fit"] & many)].groupby(["fit", "seed"]):
            out.append({"arm": arm, "fit": bool(fit), "seed": int(seed), "points": _points(run, axis)})
        fitted = own[own["fit"]]
        if many and len(fitted):
            means = mean_by(fitted.rename(columns={"value": metric}), [axis], metric).rename(columns={"mean": "value"})
            rest = fitted.groupby(axis)[["cells", "count", "chance", "mask"]].first().reset_index()
            out.append({"arm": arm, "fit": True, "seed": None, "points": _points(means.merge(rest, on=axis), axis)})
    return out


def _points(rows: pd.DataFrame, axis: str) -> list[dict]:
    """Return the points of a line. own: a cell's interval over its sequences, where a point is one cell of one seed."""
    over_seeds = "n" in rows
    names = [axis, "value", "cells", "count", "chance", "mask", "low", "high"]
    out = []
    for x, value, cells, count, chance, mask, low, high in rows[names].itertuples(index=False):
        ends = [_short(low), _short(high)]
        point = {"x": _short(x), "mean": _short(value), "cells": int(cells), "count": _short(count), "mask": int(mask)}
        point |= (
            {"chance": _short(chance), "low": ends[0], "high": ends[1]} if over_seeds else {"chance": _short(chance)}
        )
        out.append(point if over_seeds or cells > 1 or ends[0] is None else point | {"own": ends})
    if over_seeds:
        for point, n in zip(out, rows["n"], strict=True):
            point["n"] = int(n)
    return out


def _references(panel: Panel, axis: str, metric: str) -> list[dict]:
    curves = panel.references(axis, metric)
    return [
        {"name": name, "points": [[_short(x), _short(y)] for x, y in curve.items()]} for name, curve in curves.items()
    ]


def _cells(panel: Panel, metric: str) -> list[dict]:
    """Return every cell's mean over the seeds that fit (over all of an arm that never did), with the interval over seeds;
    of a single seed the interval over its sequences."""
    unfit = [arm for arm, (fitted, _) in panel.fits.items() if not fitted]
    rows = panel.table[panel.table["fit"] | panel.table["arm"].isin(unfit)].dropna(subset=[metric])
    for name in ("count", f"{metric}_low", f"{metric}_high"):
        rows = rows if name in rows else rows.assign(**{name: math.nan})
    if rows.empty:
        return []
    own = {"count": "count", "chance": "chance", "own_low": f"{metric}_low", "own_high": f"{metric}_high"}
    first = rows.groupby(CELL, dropna=False).agg(**{name: (column, "first") for name, column in own.items()})
    means = mean_by(rows, CELL, metric).merge(first.reset_index(), on=CELL)
    order = {name: i for i, name in enumerate((*panel.arms, *SPLITS))}
    means = means.sort_values(CELL, key=lambda column: column.map(order) if column.name in ("arm", "split") else column)
    out = []
    for cell in means.to_dict("records"):
        described = {name: cell[name] for name in ("arm", "split")} | {"fit": cell["arm"] not in unfit}
        described |= {
            name: _short(cell[name]) for name in ("length", "distance", "mean", "low", "high", "n", "count", "chance")
        }
        ends = [_short(cell["own_low"]), _short(cell["own_high"])]
        out.append(described | ({"own": ends} if cell["n"] == 1 and ends[0] is not None else {}))
    return out


def _short(value):
    """Return a number with five digits, whole ones as integers; None for what isn't there."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else round(float(value), 5)


def on_dark(colour: str) -> str:
    """Return a colour as seen on a dark page: the same hue, lighter."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = rgb_to_hls(red, green, blue)
    lighter = hls_to_rgb(hue, 0.92 if saturation == 0 else 0.45 + 0.5 * lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in lighter)


def _viridis() -> list[list[int]]:
    from matplotlib import colormaps

    return [[round(255 * part) for part in colormaps["viridis"](i / 15)[:3]] for i in range(16)]
