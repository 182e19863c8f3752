"""Rows as data frames: what reports, figures and consoles show. Nothing here loads a model."""

import math
import re
from dataclasses import dataclass

import pandas as pd

from ..report.style import order

NEEDED = ("arm", "encoding", "seed", "split", "length", "exact_match", "fit", "task")
OPTIONAL = {
    "distance": math.nan,
    "chance": math.nan,
    "ceiling": 1.0,
    "baselines": None,
    "panel": "",
    "run": "",
    "kind": "",
}
IN_DISTRIBUTION = ("train", "validation", "test")

LABELS = {
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "first_accuracy": "first pasted token",
    "rest_accuracy": "rest of the paste",
    "free_running_accuracy": "token accuracy, free running",
    "perplexity": "perplexity",
}
SHARES = tuple(key for key in LABELS if key != "perplexity")  # 0 to 1, more is better
BASELINES = {
    "bag_of_words": "bag of words",
    "ngram_1": "1-gram baseline",
    "ngram_2": "2-gram baseline",
    "ngram_1_rest": "1-gram baseline, rest",
    "ngram_2_rest": "2-gram baseline, rest",
    "unigram_perplexity": "token frequencies",
}


@dataclass(frozen=True)
class Panel:
    """The runs that a figure compares: those of one study and one task."""

    name: str
    title: str
    table: pd.DataFrame

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "results"


def frame(rows: list[dict]) -> pd.DataFrame:
    """Rows as a data frame; `ValueError` where there are none, columns are missing, or an arm has two runs of one seed."""
    table = pd.DataFrame(rows)
    missing = [name for name in NEEDED if name not in table]
    if table.empty:
        raise ValueError("there are no rows to report")
    if missing:
        raise ValueError(f"the rows lack {', '.join(missing)}; every row needs {', '.join(NEEDED)}")
    for name, value in OPTIONAL.items():
        if name not in table:
            table[name] = value
    for name in ("distance", "chance", *(key for key in LABELS if key in table)):
        table[name] = pd.to_numeric(table[name])
    table["ceiling"] = pd.to_numeric(table["ceiling"]).fillna(1.0)
    ends = [one if isinstance(one, list | tuple) else (math.nan, math.nan) for one in table.get("train_distance", [])]
    table["nearest_trained"], table["farthest_trained"] = zip(*ends, strict=True) if ends else (math.nan, math.nan)
    for name in ("panel", "kind"):
        table[name] = table[name].fillna("")
    table["fit"] = table["fit"].astype(bool)
    _refuse_twins(table)
    return table


def _refuse_twins(table: pd.DataFrame) -> None:
    """Two runs of one arm and seed are not two seeds, and their mean is no seed's."""
    marks = [name for name in ("run", "revision", "step") if name in table]
    runs = table.drop_duplicates(["panel", "task", "kind", "arm", "seed", *marks])
    said = lambda value: f"{value:g}" if isinstance(value, float) else value  # noqa: E731
    for (*_, arm, seed), mine in runs.groupby(["panel", "task", "kind", "arm", "seed"]):
        if len(mine) > 1:
            one, other = (
                ", ".join(f"{name} {said(row[name])}" for name in marks if not pd.isna(row[name]))
                for row in mine.head(2).to_dict("records")
            )
            raise ValueError(
                f"arm {arm!r} has two runs of seed {seed}: {one}; and {other}. Leave one out, or name one of them apart "
                "and measure it again: posgen evaluate RUN --arm NAME"
            )


def panels(table: pd.DataFrame) -> list[Panel]:
    """One per study, and per task and kind of question where a study has several."""
    out = []
    for name, part in table.groupby("panel"):
        tasks, kinds = part["task"].nunique(), part.groupby("task")["kind"].nunique()
        for (task, kind), mine in part.groupby(["task", "kind"]):
            own = [name, task if tasks > 1 or not name else "", kind if kinds[task] > 1 else ""]
            study = re.sub(r"^study(?=\d)", "Study ", name)
            said = [study, task.replace("_", " "), "" if kind in name.split() else kind]
            title = ", ".join(filter(None, said))
            out.append(Panel(" ".join(filter(None, own)), title[:1].upper() + title[1:], mine))
    return out


def metrics(table: pd.DataFrame) -> list[str]:
    """What to show: first and rest of a paste apart, of text the perplexity and how often the next token is named, else the
    exact match; and what was measured with the model's own answers read back."""
    if "perplexity" in table and table["perplexity"].notna().any():
        return ["perplexity", "token_accuracy"]
    freely = [key for key in ("free_running_accuracy",) if key in table and table[key].notna().any()]
    return (["first_accuracy", "rest_accuracy"] if pasted(table) else ["exact_match"]) + freely


def encodings(table: pd.DataFrame) -> dict[str, str]:
    """{arm: encoding}, in the order to show them."""
    first = table.drop_duplicates("arm").set_index("arm")["encoding"].to_dict()
    return {arm: first[arm] for arm in order(first)}


def fits(table: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """{arm: (seeds that fit, seeds)}."""
    runs = table.drop_duplicates(["arm", "seed", "run"])
    return {arm: (int(mine["fit"].sum()), len(mine)) for arm, mine in runs.groupby("arm")}


def trained_range(table: pd.DataFrame, axis: str) -> tuple[float, float]:
    """The trained lengths or distances, as the runs say or else read off the rows in distribution; NaN if unknown. The
    shortest and the longest trained length count even where they weren't asked (older rows don't say the shortest)."""
    if axis == "distance" and not math.isnan(low := table["nearest_trained"].min()):
        return float(low), float(table["farthest_trained"].max())
    seen = table.loc[table["split"].isin(IN_DISTRIBUTION), axis].dropna()
    ends = [float(seen.min()), float(seen.max())] if len(seen) else []
    said = ("shortest_train_length", "train_length") if axis == "length" else ()
    ends += [float(end) for name in said if name in table for end in table[name].dropna().unique()]
    return (min(ends), max(ends)) if ends else (math.nan, math.nan)


def trained_ranges(table: pd.DataFrame, axis: str) -> list[tuple[float, float]]:
    """The different trained ranges among the arms, which a study may vary."""
    ranges = {trained_range(mine, axis) for _, mine in table.groupby("arm")}
    return sorted(one for one in ranges if not math.isnan(one[0]))


def on_axis(table: pd.DataFrame, axis: str) -> pd.Series:
    """Which rows vary along one axis while the other stays as trained, for their arm."""
    other = "distance" if axis == "length" else "length"
    out = pd.Series(False, index=table.index)
    for _, mine in table.groupby("arm"):
        low, high = trained_range(mine, other)
        if axis == "distance":
            low = high  # lengths as trained are many; the longest holds the most distances
        out[mine.index] = (mine[other].between(low, high) | mine[other].isna()) & mine[axis].notna()
    return out


def along(table: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The rows of `on_axis`, without those that were selected on where others hold the same cells."""
    selected_on = (table["split"] == "validation") & (table["split"] == "test").any()
    return table[on_axis(table, axis) & ~selected_on]


def axes(table: pd.DataFrame) -> list[str]:
    """Along which axes a panel says something: those with a point outside the trained range."""
    out = []
    for axis in ("length", "distance"):
        values, ranges = along(table, axis)[axis], trained_ranges(table, axis)
        if ranges and len(values) and (values.min() < ranges[0][0] or values.max() > max(high for _, high in ranges)):
            out.append(axis)
    return out


def by_seed(table: pd.DataFrame, axis: str, metric: str) -> pd.DataFrame:
    """(arm, fit, seed, axis) → the metric, averaged over the cells that share them."""
    some = along(table, axis).dropna(subset=[metric])
    return some.groupby(["arm", "fit", "seed", axis], as_index=False)[metric].mean()


def pasted(table: pd.DataFrame) -> bool:
    """Whether answers are pastes of several tokens."""
    return "first_accuracy" in table and bool(table["first_accuracy"].notna().any())


def baselines_beside(metric: str, table: pd.DataFrame) -> list[str]:
    """The baselines that compare with a metric: counted over the same tokens, and told no more than the model is. What
    matches content can't begin a paste, and is given the right tokens; none says how often a whole paste is right."""
    if metric == "perplexity":
        return ["unigram_perplexity"]
    if metric in ("first_accuracy", "free_running_accuracy"):
        return ["bag_of_words"]
    if metric == "rest_accuracy":
        return ["bag_of_words", "ngram_1_rest", "ngram_2_rest"]
    return [] if metric == "exact_match" and pasted(table) else ["bag_of_words", "ngram_1", "ngram_2"]


def references(table: pd.DataFrame, axis: str, metric: str) -> dict[str, pd.Series]:
    """{name: values by point}: chance, a ceiling below 1, and what strategies that ignore the distance reach."""
    rows = along(table, axis)
    out = {"chance": rows.groupby(axis)["chance"].mean().dropna()} if metric in SHARES else {}
    ceiling = rows.groupby(axis)["ceiling"].mean()
    if metric in SHARES and (ceiling < 0.999).any():
        out["ceiling"] = ceiling
    for key in baselines_beside(metric, table):
        values = rows["baselines"].map(lambda all_, key=key: all_.get(key) if isinstance(all_, dict) else None)
        values = pd.to_numeric(values).groupby(rows[axis]).mean().dropna()
        out[BASELINES[key]] = values
    return {name: values for name, values in out.items() if len(values)}


def facts(table: pd.DataFrame) -> str:
    """What must stand on every figure: the size of the models, the anchor token, seeds and counts."""
    words = []
    if "parameters" in table:
        low, high = int(table["parameters"].min()), int(table["parameters"].max())
        words.append(f"{low:,} parameters" if low == high else f"{low:,} to {high:,} parameters")
    if "bos" in table:
        anchors = {bool(one) for one in table["bos"]}
        words.append(
            "anchor token in some arms" if len(anchors) > 1 else f"{'an' if True in anchors else 'no'} anchor token"
        )
    words.append(_several(sorted({n for _, n in fits(table).values()}), "seed"))
    if "count" in table:
        words.append(_several(sorted(int(one) for one in table["count"].unique()), "sequence") + " per cell")
    return ", ".join(words)


def _several(numbers: list[int], word: str) -> str:
    span = f"{numbers[0]:,}" if numbers[0] == numbers[-1] else f"{numbers[0]:,} to {numbers[-1]:,}"
    return f"{span} {word}{'' if numbers[-1] == 1 else 's'}"
