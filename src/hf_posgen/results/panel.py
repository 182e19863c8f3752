"""A panel: the runs that a figure or a table compares, with what is known of them worked out once."""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from .columns import AXES, BASELINES, IN_DISTRIBUTION, SCORES
from .order import in_order
from .shared import SharedCells, shared_at_points, shared_cells


@dataclass(frozen=True, eq=False)
class Panel:
    """The rows of one study and one task, as `frame` makes them.

    siblings: all panels of the same report, this one included.
    """

    table: pd.DataFrame
    name: str = ""
    title: str = ""
    siblings: Sequence["Panel"] = field(default=(), repr=False)

    @property
    def slug(self) -> str:
        """The start of the panel's file names: its name in plain letters, with a digest where that isn't its own."""
        plain = _plain(self.name)
        if any(_plain(panel.name) == plain and panel.name != self.name for panel in self.siblings):
            plain += f"-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"
        return plain

    def select(self, rows: pd.Series) -> "Panel":
        """Return the panel of some of the rows."""
        return Panel(self.table[rows], self.name, self.title, self.siblings)

    def arm(self, arm: str, fit: bool | None = None) -> "Panel":
        """Return the rows of one arm; fit: of its seeds that fit, or of those that did not (default: all)."""
        chosen = self.table["arm"] == arm
        return self.select(chosen if fit is None else chosen & (self.table["fit"] == fit))

    def runs(self) -> dict[int, "Panel"]:
        """Return {seed: rows} of a panel that holds one arm."""
        return {seed: Panel(run, self.name, self.title) for seed, run in self.table.groupby("seed")}

    @cached_property
    def arms(self) -> dict[str, str]:
        """{arm: its encoding}, in the order in which they are shown."""
        encodings = self.table.drop_duplicates("arm").set_index("arm")["encoding"].to_dict()
        return {arm: encodings[arm] for arm in in_order(encodings)}

    @cached_property
    def fits(self) -> dict[str, tuple[int, int]]:
        """{arm: (seeds that fit, seeds)}."""
        runs = self.table.drop_duplicates(["arm", "seed", "run"]).groupby("arm")["fit"].agg(["sum", "size"])
        return {arm: (int(fitted), int(seeds)) for arm, fitted, seeds in runs.itertuples()}

    @cached_property
    def pasted(self) -> bool:
        """Whether answers are pastes of several tokens."""
        return self.has("first_accuracy")

    @cached_property
    def metrics(self) -> list[str]:
        """The scores to show: of text the perplexity and the accuracy of the next token, of pastes their first token and
        their rest, else the exact match; and the accuracy in free running, where it was measured."""
        if self.has("perplexity"):
            return ["perplexity", "token_accuracy"]
        shown = ["first_accuracy", "rest_accuracy"] if self.pasted else ["exact_match"]
        return shown + ["free_running_accuracy"] * self.has("free_running_accuracy")

    def has(self, column: str) -> bool:
        """Return whether a column holds any value."""
        return column in self.table and bool(self.table[column].notna().any())

    @cached_property
    def _trained_by_arm(self) -> dict[str, dict[str, tuple[float, float]]]:
        arms = list(self.table.groupby("arm"))
        return {axis: {arm: _trained_range(rows, axis) for arm, rows in arms} for axis in AXES}

    @cached_property
    def _trained(self) -> dict[str, tuple[float, float]]:
        return {axis: _trained_range(self.table, axis) for axis in AXES}

    def trained_range(self, axis: str, arm: str | None = None) -> tuple[float, float]:
        """Return the smallest and the largest trained length or distance of all arms, or of one; NaN where unknown.

        It is what the runs say, or else what their rows in distribution hold. The shortest and the longest trained length
        count even where they were not evaluated."""
        return self._trained[axis] if arm is None else self._trained_by_arm[axis][arm]

    def trained_ranges(self, axis: str) -> list[tuple[float, float]]:
        """Return the different trained ranges among the arms, which a study may vary."""
        return sorted({ends for ends in self._trained_by_arm[axis].values() if not math.isnan(ends[0])})

    @cached_property
    def _on_axis(self) -> dict[str, pd.Series]:
        return {axis: self._varies_alone(axis) for axis in AXES}

    def _varies_alone(self, axis: str) -> pd.Series:
        other = "distance" if axis == "length" else "length"
        out = pd.Series(False, index=self.table.index)
        for arm, rows in self.table.groupby("arm"):
            low, high = self.trained_range(other, arm)
            if axis == "distance":
                low = high  # lengths as trained are many; the longest holds the most distances
            out[rows.index] = (rows[other].between(low, high) | rows[other].isna()) & rows[axis].notna()
        return out

    def on_axis(self, axis: str) -> pd.Series:
        """Return which rows vary along one axis while the other is as trained, for their arm."""
        return self._on_axis[axis]

    @cached_property
    def _along(self) -> dict[str, pd.DataFrame]:
        splits = self.table["split"]
        selected_on = (splits == "validation") & (splits == "test").any()
        return {axis: self.table[self.on_axis(axis) & ~selected_on] for axis in AXES}

    def along(self, axis: str) -> pd.DataFrame:
        """Return the rows of `on_axis`, without those that weights were selected on where others hold the same cells."""
        return self._along[axis]

    @cached_property
    def axes(self) -> list[str]:
        """The axes along which something outside the trained range was evaluated."""
        out = []
        for axis in AXES:
            values, ranges = self.along(axis)[axis], self.trained_ranges(axis)
            last = max((high for _, high in ranges), default=math.nan)
            if ranges and len(values) and (values.min() < ranges[0][0] or values.max() > last):
                out.append(axis)
        return out

    def by_seed(self, axis: str, metric: str) -> pd.DataFrame:
        """Return (arm, fit, seed, axis) → a score, averaged over the cells of each point of the axis, the same for every
        run that has the point."""
        rows = shared_at_points(self.along(axis).dropna(subset=[metric]), axis)
        return rows.groupby(["arm", "fit", "seed", axis], as_index=False)[metric].mean()

    @cached_property
    def shared(self) -> SharedCells:
        """The rows of the fitting runs at the lengths and distances that all of them have."""
        return shared_cells(self.table[self.table["fit"]], by_split=False)

    def shared_values(self, metric: str) -> SharedCells:
        """Return the rows of the fitting runs in the cells of each split where all of them have a score."""
        if metric not in self._shared_values:
            self._shared_values[metric] = shared_cells(self.table[self.table["fit"]].dropna(subset=[metric]))
        return self._shared_values[metric]

    @cached_property
    def _shared_values(self) -> dict[str, SharedCells]:
        return {}

    def baseline_keys(self, metric: str) -> tuple[str, ...]:
        """Return the keys of the baselines that may stand beside a score."""
        return SCORES[metric].baselines_beside(self.pasted)

    def references(self, axis: str, metric: str) -> dict[str, pd.Series]:
        """Return {name: values by point}: chance, a ceiling below 1, and what strategies without positions score."""
        rows = self.along(axis)
        out = {}
        if SCORES[metric].is_share:
            out["chance"] = rows.groupby(axis)[SCORES[metric].chance].mean().dropna()
            ceiling = rows.groupby(axis)["ceiling"].mean()
            if (ceiling < 0.999).any():
                out["ceiling"] = ceiling
        for key in self.baseline_keys(metric):
            out[BASELINES[key]] = baseline(rows, key).groupby(rows[axis]).mean().dropna()
        return {name: values for name, values in out.items() if len(values)}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "results"


def baseline(rows: pd.DataFrame, key: str) -> pd.Series:
    """Return what a baseline scores in each row; NaN where the row doesn't say."""
    return pd.to_numeric(rows["baselines"].map(lambda known: known.get(key) if isinstance(known, dict) else None))


def _trained_range(rows: pd.DataFrame, axis: str) -> tuple[float, float]:
    if axis == "distance" and not math.isnan(low := rows["nearest_trained"].min()):
        return float(low), float(rows["farthest_trained"].max())
    seen = rows.loc[rows["split"].isin(IN_DISTRIBUTION), axis].dropna()
    ends = [float(seen.min()), float(seen.max())] if len(seen) else []
    columns = ("shortest_train_length", "train_length") if axis == "length" else ()  # older rows lack the shortest
    ends += [float(end) for name in columns if name in rows for end in rows[name].dropna().unique()]
    return (min(ends), max(ends)) if ends else (math.nan, math.nan)
