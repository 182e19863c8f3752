"""The cells that runs share: numbers that compare arms are over the same cells, and what is left out is named."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

MOST_NAMED = 12  # cells that a sentence lists


@dataclass(frozen=True)
class SharedCells:
    """rows: those of the shared cells. left_out: {name of a cell: the arms that have it}."""

    rows: pd.DataFrame
    left_out: dict[str, tuple[str, ...]]

    @property
    def sentence(self) -> str:
        """Say what was left out; empty where nothing was."""
        by_arms = defaultdict(list)
        for cell, arms in self.left_out.items():
            by_arms[arms].append(cell)
        named = [f"{name_some(cells)} (only in {', '.join(arms)})" for arms, cells in by_arms.items()]
        return f"Over the cells that all arms share; left out: {'; '.join(named)}." if named else ""


def name_some(cells: Iterable[str]) -> str:
    """Return the names of cells, of many the first ones and how many there are."""
    cells = list(cells)
    more = f" and {len(cells) - MOST_NAMED} more" if len(cells) > MOST_NAMED else ""
    return ", ".join(cells[:MOST_NAMED]) + more


def shared_cells(rows: pd.DataFrame, by_split: bool = True) -> SharedCells:
    """Return the rows of the cells that every run has, of the runs with any cell in the same split.

    by_split: whether a cell of one split is another cell than the same length and distance in another split, as it is for
    means over a split (arms may be trained on different ranges)."""
    keys = list(zip(rows["split"], rows["length"], rows["distance"].fillna(-1.0), strict=True))
    runs = list(zip(rows["arm"], rows["seed"], strict=True))
    cells_of, runs_in = defaultdict(set), defaultdict(set)
    for run, key in zip(runs, keys, strict=True):
        cells_of[run].add(key if by_split else key[1:])
        runs_in[key[0]].add(run)
    shared = {
        key: all((key if by_split else key[1:]) in cells_of[run] for run in runs_in[key[0]])
        for key in dict.fromkeys(keys)
    }
    having: dict[str, dict[str, None]] = defaultdict(dict)
    for (arm, _), key in zip(runs, keys, strict=True):
        if not shared[key]:
            having[cell_name(*key)][arm] = None
    left_out = {name: tuple(arms) for name, arms in having.items()}
    in_all = pd.Series(
        [shared[key] for key in keys], index=rows.index, dtype=bool
    )  # without rows it would pick columns
    return SharedCells(rows[in_all], left_out)


def cell_name(split: str, length: float, distance: float) -> str:
    """Return the name of a cell in sentences. distance: negative where a cell has none."""
    return f"{split} L{length:g}" + (f" d{distance:g}" if distance >= 0 else "")


def shared_at_points(rows: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return the rows whose place on the other axis every run has that has their point of `axis`: then means over the cells
    of a point are over the same cells. Where runs share none at a point, as those trained on other ranges, all stay."""
    other = "distance" if axis == "length" else "length"
    if rows.empty or rows[other].nunique(dropna=False) < 2:
        return rows
    run = rows.groupby(["arm", "seed"]).ngroup()
    place = [rows[axis], rows[other].fillna(-1.0)]
    at_all = run.groupby(place).transform("nunique") == run.groupby(rows[axis]).transform("nunique")
    return rows[at_all | ~at_all.groupby(rows[axis]).transform("any")]
