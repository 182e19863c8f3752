"""What a task is: parameters, cells, splits, reference points. What its sequences hold is the business of `TokenTask`
and `RealTask`.

Shape suffixes: N sequences, T places of a sequence (with the anchor token and answer slots).
"""

import dataclasses
import typing
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from .cells import SPLITS, Cell, refuse_overlap
from .parameters import typed


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task: its fields are its parameters, all of them effective.

    Raises `ValueError` for a parameter of the wrong type, parameters that can't be together, and an evaluation cell
    that training sees.
    """

    name = ""
    continuous = False  # real-valued: no vocabulary
    natural = False  # text that somebody wrote: scored in perplexity, by position too
    columns = ("input_ids", "labels")  # the arrays of `sample`, as a data set and the model's forward call them
    version = 1  # of the generator: raise it with every change of what `sample` returns
    answer_slots = 0  # places after the last one of `length`, which only carry a label

    def __post_init__(self):
        for field in dataclasses.fields(self):
            hint = _hints(type(self))[field.name]
            self._set(field.name, typed(self.name, field.name, getattr(self, field.name), hint))
        self.check()
        for key, value in self.derived().items():
            if getattr(self, key) is None:
                self._set(key, value)
        refuse_overlap(self.name, self.splits(), self.trained_cells())
        for cell in sorted({cell for cells in self.splits().values() for cell in cells}, reverse=True):
            self.check_cell(cell)

    def _set(self, key: str, value) -> None:
        object.__setattr__(self, key, value)

    def check(self) -> None:
        """`ValueError` for parameters that can't be."""

    def derived(self) -> dict:
        """Values of the parameters given as None that follow from the others."""
        return {}

    def require(self, condition: bool, text: str) -> None:
        if not condition:
            raise ValueError(f"task {self.name!r}: {text}")

    @property
    def parameters(self) -> dict:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def sample(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, ...]:
        """`count` sequences of one cell, what is asked of them, and what else `columns` names. Raises `ValueError` for a
        cell that can't be."""
        raise NotImplementedError

    def block(self, seed: int, split: str, cell: Cell, number: int, size: int) -> tuple[np.ndarray, ...]:
        """Examples `number` * `size` of a cell and those after it, `size` of them: a sample from a generator of its own."""
        distance = 0 if cell.distance is None else cell.distance + 1
        key = [seed, zlib.crc32(split.encode()), cell.length, distance, number]
        return self.sample(np.random.Generator(np.random.SFC64(key)), size, cell)

    def available(self, split: str, cell: Cell, count: int) -> int:
        """How many of `count` different examples of a cell there are: what is generated never ends."""
        return count

    def check_cell(self, cell: Cell) -> None:
        """`ValueError` for a cell that can't be sampled."""

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        raise NotImplementedError

    def cells(self, split: str) -> tuple[Cell, ...]:
        """The cells of a split; `ValueError` for one that this task doesn't have."""
        splits = self.splits()
        if not splits.get(split):
            have = ", ".join(name for name in SPLITS if splits.get(name))
            raise ValueError(f"task {self.name!r} has no split {split!r}; it has: {have}")
        return splits[split]

    def trained_cells(self) -> set[Cell]:
        """Every (length, distance) that training sees, and (length, None) where it mixes distances."""
        splits = self.splits()
        return set(splits["train"]) | set(splits["test"])

    @property
    def kind(self) -> str:
        """Which of a task's questions is asked, where it has several: rows of different kinds are never averaged."""
        return ""

    def slots(self) -> int:
        """Places a sequence has beyond its length."""
        return self.answer_slots

    def max_tokens(self, cells: Iterable[Cell] | None = None) -> int:
        """The longest sequence of some cells (None: of all splits), with anchor and slots."""
        cells = [cell for mine in self.splits().values() for cell in mine] if cells is None else cells
        return max(cell.length for cell in cells) + self.slots()

    def chance(self, cell: Cell) -> float:
        """What a guess that reads nothing scores."""
        raise NotImplementedError

    def ceiling(self, cell: Cell) -> float:
        """What a perfect model scores: below 1 where some answers can't be known."""
        return 1.0

    def baselines(self, cell: Cell) -> dict[str, float]:
        """What strategies that ignore the distance score, by name."""
        return {}


@cache
def _hints(cls: type) -> dict:
    return typing.get_type_hints(cls)
