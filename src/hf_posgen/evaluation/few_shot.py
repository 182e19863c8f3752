"""A task asked by example: some solved sequences, then the one that is asked."""

from dataclasses import dataclass, replace

import numpy as np

from ..tasks import Cell
from ..tasks.core.token_task import IGNORE, TokenTask

ASK, NEXT = "[ASK]", "[NEXT]"


@dataclass(frozen=True, kw_only=True)
class FewShot(TokenTask):
    """A task whose sequences begin with `shots` solved ones, a line each.

        shots 2, answer slots 1:   x x x [ASK] x [NEXT] x x [ASK] x [NEXT] x x x x x [ASK] (x)

    The solved ones are drawn from trained cells, spread over them: what they show is what "trained" means here, and an
    unseen length or distance is unseen in the examples too. [ASK] stands before answer slots, where nothing else tells that
    an answer is due: the answer stands one token further from what it depends on, in every line. All else is the task's.
    """

    task: TokenTask
    shots: int = 4

    def __post_init__(self):
        self.require(self.shots >= 1, f"shots is {self.shots}; it must be at least 1")
        self.require(not self.task.natural, "text has no answers to show: ask it by symbols")
        self.require("positions" not in self.task.columns, "solved examples have no positions: ask it by symbols")
        self._set("task", replace(self.task, bos=False))  # a text begins once
        tokens, labels = self.task.sample(np.random.default_rng(0), 4, self.task.cells("train")[0])
        self.require(
            ((labels == IGNORE) | (labels == tokens)).all(),
            "answers don't stand in the sequence here, so that a solved one can't be shown: ask it by symbols",
        )

    name = property(lambda self: self.task.name)
    kind = property(lambda self: self.task.kind)
    version = property(lambda self: self.task.version)
    paste = property(lambda self: self.task.paste)
    data_symbols = property(lambda self: self.task.data_symbols)

    @property
    def vocabulary(self) -> list[str]:
        return [*self.task.vocabulary, ASK, NEXT]

    @property
    def answer_slots(self) -> int:
        """All that a sequence holds beyond its cell's length: the solved ones too."""
        return self._own_slots + sum(cell.length + self._own_slots + 1 for cell in self.shown())

    @property
    def _own_slots(self) -> int:
        return self.task.slots() + (self.task.answer_slots > 0)

    def shown(self) -> list[Cell]:
        """The cells of the solved sequences: spread from the first trained one to the last."""
        cells = sorted(self.task.cells("train"))
        return [cells[round(place)] for place in np.linspace(0, len(cells) - 1, self.shots)]

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        return self.task.splits()

    def trained_cells(self) -> set[Cell]:
        return self.task.trained_cells()

    def check_cell(self, cell: Cell) -> None:
        self.task.check_cell(cell)

    def chance(self, cell: Cell) -> float:
        return self.task.chance(cell)

    def ceiling(self, cell: Cell) -> float:
        return self.task.ceiling(cell)

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Of the asked sequence alone."""
        return self.task.baselines(cell)

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        parts = []
        for one in self.shown():
            tokens, _ = self._line(rng, count, one)
            tokens = np.pad(tokens, ((0, 0), (0, 1)), constant_values=self.control(NEXT[1:-1]))
            parts.append((tokens, np.full_like(tokens, IGNORE)))
        parts.append(self._line(rng, count, cell))
        tokens, labels = zip(*parts, strict=True)
        return np.hstack(tokens), np.hstack(labels)

    def _line(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        tokens, labels = self.task.sample(rng, count, cell)
        if not self.task.answer_slots:
            return tokens, labels
        ask = np.full(count, self.control(ASK[1:-1]))
        return np.insert(tokens, cell.length, ask, axis=1), np.insert(labels, cell.length, IGNORE, axis=1)
