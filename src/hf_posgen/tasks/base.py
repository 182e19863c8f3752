"""What a task is.

Shape suffixes: N sequences, T tokens of a sequence (with the anchor token and answer slots).
"""

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .cells import SPLITS, Cell, refuse_overlap

IGNORE = -100


@dataclass(frozen=True, kw_only=True)
class Task:
    """A synthetic task: its fields are its parameters, all of them effective.

    `sample` returns tokens and labels (N, T), both int64. Labels are transformers': the label at t is scored on the
    logits at t - 1, and -100 is not scored. Token ids: data symbols first, then the control tokens.

    bos: begin each sequence with an anchor token (it decides what a model without encoding can do, so rows state it).
    """

    name = ""
    control_names = ()  # control tokens besides BOS and PAD
    paste = False  # whether a run of scored labels is one answer
    version = 1  # of the generator: raise it with every change of what `sample` returns

    bos: bool = False

    def __post_init__(self):
        self.check()
        refuse_overlap(self.splits(), self.trained_cells())

    def check(self) -> None:
        """`ValueError` for parameters that can't be."""

    def require(self, condition: bool, text: str) -> None:
        if not condition:
            raise ValueError(f"task {self.name!r}: {text}")

    @property
    def parameters(self) -> dict:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @property
    def data_symbols(self) -> int:
        """How many symbols carry data."""
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

    def sample(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        """`count` sequences of one cell."""
        self.check_cell(cell)
        tokens, labels = self.draw(rng, count, cell)
        if not self.bos:
            return tokens, labels
        anchor = np.full((count, 1), self.bos_token_id)
        return np.hstack([anchor, tokens]), np.hstack([np.full_like(anchor, IGNORE), labels])

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        raise AttributeError(f"task {self.name!r} has no draw")

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
        """Every (length, distance) that training sees."""
        return set(self.splits()["train"])

    def slots(self) -> int:
        """Tokens a sequence has beyond its length."""
        return int(self.bos)

    def max_tokens(self, splits=SPLITS) -> int:
        """The longest sequence of some splits, with anchor and slots."""
        mine = self.splits()
        return max(cell.length for split in splits for cell in mine.get(split, ())) + self.slots()

    def chance(self, cell: Cell) -> float:
        """Accuracy of a uniform guess among the data symbols."""
        return 1.0 / self.data_symbols

    def ceiling(self, cell: Cell) -> float:
        """Accuracy of a perfect model: below 1 where some answers can't be known."""
        return 1.0

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Accuracy of strategies that ignore the distance, by name."""
        return {}
