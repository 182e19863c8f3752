"""Rows as tables: what reports, cards and consoles show. Nothing here loads a model."""

import pandas as pd

from .statistics import clopper_pearson, t_interval

ENCODING_ORDER = ["none", "learned", "sinusoidal", "rope", "alibi"]


def frame(rows: list[dict]) -> pd.DataFrame:
    """Rows as a data frame; `ValueError` where there are none or columns are missing."""
    table = pd.DataFrame(rows)
    needed = {"arm", "encoding", "seed", "split", "length", "exact_match", "fit", "task"}
    if table.empty or not needed <= set(table.columns):
        missing = ", ".join(sorted(needed - set(table.columns)))
        raise ValueError(f"no rows to report{f': they lack {missing}' if len(table) else ''}")
    if "panel" not in table:
        table["panel"] = ""
    table["panel"] = table["panel"].fillna("").replace("", "results")
    return table


def metrics(table: pd.DataFrame) -> list[str]:
    """What to show: first and rest of a paste apart, else the exact match."""
    has_first = "first_accuracy" in table and table["first_accuracy"].notna().any()
    return ["first_accuracy", "rest_accuracy"] if has_first else ["exact_match"]


LABELS = {
    "first_accuracy": "first pasted token",
    "rest_accuracy": "rest of the paste",
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
}


def arms(table: pd.DataFrame) -> list[str]:
    """Arms in the field's usual order of encodings, then by name."""
    first = table.drop_duplicates("arm")
    rank = {name: i for i, name in enumerate(ENCODING_ORDER)}
    order = sorted(zip(first["arm"], first["encoding"], strict=True), key=lambda p: (rank.get(p[1], 99), p[0]))
    return [arm for arm, _ in order]


def trained_range(table: pd.DataFrame, axis: str) -> tuple[float, float]:
    """The trained lengths or distances, read off the rows in distribution."""
    seen = table[table["split"].isin(["train", "validation", "test"])][axis].dropna()
    return (float(seen.min()), float(seen.max())) if len(seen) else (float("nan"), float("nan"))


def along(table: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The rows that vary along one axis while the other stays as trained."""
    other = "distance" if axis == "length" else "length"
    low, high = trained_range(table, other)
    if axis == "distance":
        low = high  # the full window
    inside = table[table[other].between(low, high) | table[other].isna()]
    return inside[inside["split"] != "validation"]


def axes(table: pd.DataFrame) -> list[str]:
    """Along which axes a panel says something: those with a point outside the trained range."""
    out = []
    for axis in ("length", "distance"):
        values, (low, high) = along(table, axis)[axis].dropna(), trained_range(table, axis)
        if len(values) and (values.min() < low or values.max() > high):
            out.append(axis)
    return out


def by_seed(table: pd.DataFrame, axis: str, metric: str) -> pd.DataFrame:
    """(arm, fit, seed, axis) → the metric, averaged over the cells that share them."""
    some = along(table, axis).dropna(subset=[metric])
    return some.groupby(["arm", "fit", "seed", axis], as_index=False)[metric].mean()


def summary(values: list[float]) -> str:
    """Mean and interval over seeds as a person reads it."""
    if len(values) == 1:
        return f"{values[0]:.2f} (one seed)"
    interval = t_interval(values)
    mean = sum(values) / len(values)
    if interval is None:
        return f"{mean:.2f} ({' '.join(f'{v:.2f}' for v in sorted(values))})"
    return f"{mean:.2f} [{max(0, interval[0]):.2f}, {min(1, interval[1]):.2f}]"


def axis_table(table: pd.DataFrame, axis: str, metric: str, most: int = 9) -> pd.DataFrame:
    """Arms × points of an axis: mean and interval over the seeds that fit, all seeds marked * where none did."""
    seeds = by_seed(table, axis, metric)
    points = sorted(seeds[axis].unique())
    if len(points) > most:
        low, high = trained_range(table, axis)
        inside = [p for p in points if low <= p <= high]
        outside = [p for p in points if p not in inside]
        keep = {inside[0], inside[-1]} if inside else set()
        step = max(1, -(-len(outside) // (most - len(keep))))
        points = sorted(keep | set(outside[::step]) | {outside[-1]} if outside else keep)
    out = {}
    for arm in arms(table):
        mine = seeds[seeds["arm"] == arm]
        fitted = mine[mine["fit"].astype(bool)]
        name, shown = (arm, fitted) if len(fitted) else (f"{arm} *", mine)
        out[name] = {
            int(p): summary(shown[shown[axis] == p][metric].tolist()) if (shown[axis] == p).any() else "-"
            for p in points
        }
    chance = along(table, axis).groupby(axis)["chance"].mean()
    out["chance"] = {int(p): f"{chance[p]:.2f}" for p in points if p in chance}
    return pd.DataFrame(out).T


def fit_table(table: pd.DataFrame) -> pd.DataFrame:
    """How many seeds of each arm learned what they were shown, with the exact interval, and what an arm cost."""
    out = {}
    for arm in arms(table):
        mine = table[table["arm"] == arm].drop_duplicates(["seed", "run"])
        n, k = len(mine), int(mine["fit"].sum())
        low, high = clopper_pearson(k, n)
        out[arm] = {
            "fit": f"{k} of {n} [{low:.2f}, {high:.2f}]",
            "parameters": int(mine["parameters"].iloc[0]),
            "tokens seen": int(mine["tokens_seen"].max()),
            "learning rate": mine["lr"].iloc[0],
            "head size": int(mine["head_size"].iloc[0]),
            "anchor token": "yes" if mine["bos"].iloc[0] else "no",
        }
    return pd.DataFrame(out).T


def summary_tables(rows: list[dict]) -> str:
    """The console's tables: encoding × length and encoding × distance."""
    table, blocks = frame(rows), []
    for panel, part in table.groupby("panel"):
        for axis in axes(part):
            low, high = trained_range(part, axis)
            for metric in metrics(part):
                title = f"{panel}: {LABELS[metric]} by {axis} (trained {low:.0f} to {high:.0f})"
                blocks.append(f"{title}\n{axis_table(part, axis, metric).to_markdown()}")
        if not part.groupby("arm")["fit"].any().all():
            blocks[-1] += "\n* did not fit: it says nothing about generalisation"
    return "\n\n".join(blocks)
