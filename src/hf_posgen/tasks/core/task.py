"""What a task is: parameters, cells, splits, reference points. What its sequences hold is the business of `TokenTask`
and `RealTask`.

Shape suffixes: N sequences, T places of a sequence (with the anchor token and answer slots).
"""

import dataclasses
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...common.typed import typed
from .cells import SPLITS, Cell, refuse_overlap
from .parameters import check_bounds, type_hints


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task: its fields are its parameters (see `parameter`), all of them effective.

    configs: {name: parameters} of the configurations that `load_task(name, config)` and the data sets on the Hub know; the
    first one is the default. A run names its task by parameters, never by a configuration: a configuration may be added at
    any time, what it stands for never changes.

    Raises `ValueError` for a parameter of the wrong type or out of bounds, parameters that can't be together, and an
    evaluation cell that training sees.
    """

    name = ""
    paper = None  # the arXiv id of its source
    configs = {"default": {}}
    generated = True  # drawn from a seed, so that it can be loaded and exported; else it is the user's own data
    metric = "exact_match"  # what its cells are judged by: exact_match, perplexity or mean_squared_error
    continuous = False  # real-valued: no vocabulary
    columns = ("input_ids", "labels")  # the arrays of `sample`, as a data set and the model's forward call them
    version = 1  # of the generator: raise it with every change of what `sample` returns
    answer_slots = 0  # places after the last one of `length`, which only carry a label

    def __post_init__(self):
        for field in dataclasses.fields(self):
            hint = type_hints(type(self))[field.name]
            value = typed(f"task {self.name!r}: {field.name}", getattr(self, field.name), hint)
            check_bounds(self.name, field, value)
            self._set(field.name, value)
        self.check()
        for key, value in self.derived().items():
            if getattr(self, key) is None:
                self._set(key, value)
        refuse_overlap(self.name, self.splits(), self.trained_cells())
        cells = {cell for cells in self.splits().values() for cell in cells}
        for cell in sorted(cells, key=lambda cell: cell.order, reverse=True):
            self.check_cell(cell)

    def _set(self, key: str, value) -> None:
        object.__setattr__(self, key, value)

    def check(self) -> None:
        """Raise `ValueError` for parameters that can't be together."""

    def derived(self) -> dict:
        """Return values for the parameters given as None, which follow from the others."""
        return {}

    def require(self, condition: bool, text: str) -> None:
        """Raise `ValueError` with a sentence about this task unless the condition holds."""
        if not condition:
            raise ValueError(f"task {self.name!r}: {text}")

    @property
    def parameters(self) -> dict:
        """Every effective parameter by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @property
    def drawn_parameters(self) -> dict:
        """The parameters that shape what is drawn: all but those that only choose the evaluated cells."""
        fields = dataclasses.fields(self)
        return {f.name: getattr(self, f.name) for f in fields if not f.metadata.get("evaluation")}

    def sample(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, ...]:
        """Draw `count` sequences of one cell: the arrays that `columns` names. Raises `ValueError` for a cell that can't
        be."""
        raise NotImplementedError

    def block(self, seed: int, split: str, cell: Cell, number: int, size: int) -> tuple[np.ndarray, ...]:
        """Draw examples `number` * `size` of a cell and those after it, `size` of them, from a generator of their own."""
        distance = 0 if cell.distance is None else cell.distance + 1
        key = [seed, zlib.crc32(split.encode()), cell.length, distance, number]
        return self.sample(np.random.Generator(np.random.SFC64(key)), size, cell)

    def available(self, split: str, cell: Cell, count: int) -> int:
        """Return how many of `count` different examples of a cell there are: what is generated never ends."""
        return count

    def check_cell(self, cell: Cell) -> None:
        """Raise `ValueError` for a cell that can't be sampled."""

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        """Return the cells of each split (see `cells.SPLITS`)."""
        raise NotImplementedError

    def cells(self, split: str) -> tuple[Cell, ...]:
        """Return the cells of a split; `ValueError` for one that this task doesn't have."""
        splits = self.splits()
        if not splits.get(split):
            have = ", ".join(name for name in SPLITS if splits.get(name))
            raise ValueError(f"task {self.name!r} has no split {split!r}; it has: {have}")
        return splits[split]

    def trained_cells(self) -> set[Cell]:
        """Return every (length, distance) that training sees, and (length, None) where it mixes distances."""
        splits = self.splits()
        return set(splits["train"]) | set(splits["test"])

    @property
    def kind(self) -> str:
        """Which of a task's questions is evaluated, where it has several: rows of different kinds are never averaged."""
        return ""

    def slots(self) -> int:
        """Return how many places a sequence has beyond its length."""
        return self.answer_slots

    def max_tokens(self, cells: Iterable[Cell] | None = None) -> int:
        """Return the length of the longest sequence of some cells (None: of all splits), with anchor and slots."""
        cells = [cell for split in self.splits().values() for cell in split] if cells is None else cells
        return max(cell.length for cell in cells) + self.slots()

    def chance(self, cell: Cell) -> float:
        """Return what a guess that reads nothing scores."""
        raise NotImplementedError

    def ceiling(self, cell: Cell) -> float:
        """Return what a perfect model scores: below 1 where some answers can't be known; None where nobody knows."""
        return 1.0

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return what strategies that ignore the distance score, by name."""
        return {}

    @classmethod
    def hub_corpus(cls, spec: dict) -> str | None:
        """Return the Hub id of the data that a complete spec reads; None for what is generated, or lies elsewhere."""
        return None
