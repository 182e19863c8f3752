"""What is drawn of study 2's streams before their values: the lengths of all blocks and the kinds of the marks.

Shape suffixes: N streams, K cycles.
"""

from dataclasses import dataclass

import numpy as np

from ..core.cells import Cell
from .blocks import Blocks, fillers, gaps, joined


@dataclass
class Plan:
    """What is drawn of the streams before their values: gaps, fillers, and the kinds of the marks."""

    gap: Blocks
    filler: Blocks
    kind: np.ndarray  # (N, K): 0 is C, 1 is S

    def marks(self, task) -> np.ndarray:
        """Return the control token of each pair, (N, K)."""
        return np.array([task.control(kind) for kind in "CS"], np.int32)[self.kind]


def draw_plan(task, rng, count: int, cell: Cell) -> Plan:
    """Draw enough cycles to fill every window."""
    kinds = task.kinds if task.asked == "all" or cell.distance is None else task.asked
    shortest_paste = {"C": task.copied, "S": int(task.even_source == "ensured")}
    typical = _typical_cycle(task, cell, kinds[-1], shortest_paste)
    parts, filled_N = [], np.zeros(count)
    while not parts or filled_N.min() < cell.length:
        cycles = 2 + int(max(1, cell.length - filled_N.min()) / typical * 1.2) + 3 * (not parts)
        part = _draw_cycles(task, rng, (count, cycles), kinds, cell.distance)
        least = part.gap.length + part.filler.length + 2 + np.array(list(shortest_paste.values()))[part.kind]
        filled_N += least[:, 0 if parts else 3 :].sum(1)  # a window may begin as late as the end of the third cycle
        parts.append(part)
    return Plan(
        joined([part.gap for part in parts]),
        joined([part.filler for part in parts]),
        np.concatenate([part.kind for part in parts], 1),
    )


def _typical_cycle(task, cell: Cell, kind: str, shortest_paste: dict[str, int]) -> float:
    """Return about how many tokens a cycle takes: it decides how many are drawn at a time."""
    block = 1 + task.block_trials * task.block_probability
    distance = int(np.mean(task.trained_distances(kind))) if cell.distance is None else cell.distance
    return block * (task.gap_blocks + 1) / 2 + 2 + shortest_paste[kind] + task.between(distance)


def _draw_cycles(task, rng, shape: tuple[int, int], kinds: str, distance: int | None) -> Plan:
    """Draw cycles of some kinds; distance: of all pairs, or None: each draws its own from those trained for its kind."""
    if kinds == "CS":
        kind = rng.integers(2, size=shape, dtype=np.int8)
    else:
        kind = np.full(shape, "CS".index(kinds), np.int8)
    if distance is not None:
        distances = np.full(shape, distance)
    else:
        distances = np.zeros(shape, np.int64)
        for name in kinds:
            trained = np.array(task.trained_distances(name))
            drawn = trained[rng.integers(len(trained), size=shape)]
            distances = np.where(kind == "CS".index(name), drawn, distances)
    return Plan(gaps(task, rng, shape), fillers(task, rng, task.between(distances)), kind)
