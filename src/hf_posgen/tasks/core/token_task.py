"""Tasks over a vocabulary."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .cells import Cell
from .task import Task

IGNORE = -100


@dataclass(frozen=True, kw_only=True)
class TokenTask(Task):
    """A task whose sequences are token ids: data symbols first, then the control tokens.

    `sample` returns tokens and labels (N, T), both int64. Labels are transformers': the label at t is scored on the
    logits at t - 1, and -100 is not scored.

    bos: begin each sequence with an anchor token (it decides what a model without encoding can do, so rows state it).
    """

    control_names = ()  # control tokens besides BOS and PAD
    paste = False  # whether a run of scored labels is one answer

    bos: bool = False

    @property
    def data_symbols(self) -> int:
        """How many symbols carry data; their token ids come first."""
        raise NotImplementedError

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
        """The token id of a control token."""
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

    def sample(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, ...]:
        self.check_cell(cell)
        return self.anchored(self.draw(rng, count, cell))

    def anchored(self, parts: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Tokens, labels and positions, with the anchor token before them where the task has one."""
        front = (self.bos_token_id, IGNORE, 0)[: len(parts)]
        add = lambda part, value: np.pad(part, ((0, 0), (1, 0)), constant_values=value)  # noqa: E731
        return tuple(map(add, parts, front)) if self.bos else parts

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, ...]:
        """`sample` without the anchor token."""
        raise NotImplementedError

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        """{place: answer} for one sequence, by the rule, in plain Python; the answer at t reads tokens before t only."""
        raise NotImplementedError

    def slots(self) -> int:
        return int(self.bos) + self.answer_slots

    def chance(self, cell: Cell) -> float:
        """Accuracy of a uniform guess among the answers that can occur."""
        return 1.0 / self.data_symbols
