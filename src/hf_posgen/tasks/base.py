"""What a task is.

Shape suffixes: N sequences, T tokens of a sequence (with the anchor token and answer slots).
"""

import dataclasses
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from .cells import SPLITS, Cell, refuse_overlap
from .parameters import typed

IGNORE = -100


@dataclass(frozen=True, kw_only=True)
class Task:
    """A synthetic task: its fields are its parameters, all of them effective.

    `sample` returns tokens and labels (N, T), both int64. Labels are transformers': the label at t is scored on the
    logits at t - 1, and -100 is not scored. Token ids: data symbols first, then the control tokens.

    bos: begin each sequence with an anchor token (it decides what a model without encoding can do, so rows state it).

    Raises `ValueError` for a parameter of the wrong type, parameters that can't be together, and an evaluation cell
    that training sees.
    """

    name = ""
    control_names = ()  # control tokens besides BOS and PAD
    paste = False  # whether a run of scored labels is one answer
    continuous = False  # real-valued tasks have no vocabulary (see real_task.py)
    version = 1  # of the generator: raise it with every change of what `sample` returns
    answer_slots = 0  # tokens after the last one of `length`, which only carry a label

    bos: bool = False

    def __post_init__(self):
        for field in dataclasses.fields(self):
            self._set(
                field.name, typed(self.name, field.name, getattr(self, field.name), _hints(type(self))[field.name])
            )
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

    @property
    def data_symbols(self) -> int:
        """How many symbols carry data; their token ids come first."""
        raise AttributeError(f"task {self.name!r} has no data_symbols")

    @cached_property
    def vocabulary(self) -> list[str]:
        """Token id → printable name."""
        return [str(i) for i in range(self.data_symbols)] + [
            f"[{name}]" for name in (*self.control_names, "BOS", "PAD")
        ]

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    def control(self, name: str) -> int:
        return self.vocabulary.index(f"[{name}]")

    @property
    def bos_token_id(self) -> int:
        return self.control("BOS")

    @property
    def pad_token_id(self) -> int:
        return self.control("PAD")

    @property
    def eos_token_id(self) -> None:
        """No sequence of these tasks ends by itself."""
        return None

    def sample(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        """`count` sequences of one cell. Raises `ValueError` for a cell that can't be."""
        self.check_cell(cell)
        tokens, labels = self.draw(rng, count, cell)
        if not self.bos:
            return tokens, labels
        anchor = np.full((count, 1), self.bos_token_id)
        return np.hstack([anchor, tokens]), np.hstack([np.full_like(anchor, IGNORE), labels])

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        """`sample` without the anchor token."""
        raise AttributeError(f"task {self.name!r} has no draw")

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        """{place: answer} for one sequence, by the rule, in plain Python; the answer at t reads tokens before t only."""
        raise AttributeError(f"task {self.name!r} has no oracle")

    def check_cell(self, cell: Cell) -> None:
        """`ValueError` for a cell that can't be sampled."""

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        raise AttributeError(f"task {self.name!r} has no splits")

    def cells(self, split: str) -> tuple[Cell, ...]:
        """The cells of a split; `ValueError` for one that this task doesn't have."""
        splits = self.splits()
        if not splits.get(split):
            have = ", ".join(name for name in SPLITS if splits.get(name))
            raise ValueError(f"task {self.name!r} has no split {split!r}; it has: {have}")
        return splits[split]

    def trained_cells(self) -> set[Cell]:
        """Every (length, distance) that training sees: `test` asks exactly those."""
        splits = self.splits()
        return set(splits["train"]) | set(splits["test"])

    def slots(self) -> int:
        """Tokens a sequence has beyond its length."""
        return int(self.bos) + self.answer_slots

    def max_tokens(self, cells: Iterable[Cell] | None = None) -> int:
        """The longest sequence of some cells (None: of all splits), with anchor and slots."""
        cells = [cell for mine in self.splits().values() for cell in mine] if cells is None else cells
        return max(cell.length for cell in cells) + self.slots()

    def chance(self, cell: Cell) -> float:
        """Accuracy of a uniform guess among the answers that can occur."""
        return 1.0 / self.data_symbols

    def ceiling(self, cell: Cell) -> float:
        """Accuracy of a perfect model: below 1 where some answers can't be known."""
        return 1.0

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Accuracy of strategies that ignore the distance, by name."""
        return {}


@cache
def _hints(cls: type) -> dict:
    return typing.get_type_hints(cls)
