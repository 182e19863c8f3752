"""A task shown by example: some solved sequences, then the one to solve."""

from dataclasses import dataclass, replace

import numpy as np

from ..tasks import Cell
from ..tasks.core.token_task import IGNORE, TokenTask

ANSWER, NEXT = "[ANSWER]", "[NEXT]"


@dataclass(frozen=True, kw_only=True)
class FewShot(TokenTask):
    """A task whose sequences begin with `shots` solved ones, a line each.

        shots 2, answer slots 1:   x x x [ANSWER] x [NEXT] x x [ANSWER] x [NEXT] x x x x x [ANSWER] (x)

    The solved ones are drawn from trained cells, spread over them: what they show is what "trained" means here, and an
    unseen length or distance is unseen in the examples too. [ANSWER] stands before answer slots, where nothing else tells
    that an answer is due: the answer stands one token further from what it depends on, in every line. All else is the
    task's.
    """

    task: TokenTask
    shots: int = 4

    def __post_init__(self):
        self.require(self.shots >= 1, f"shots is {self.shots}; it must be at least 1")
        self.require(self.task.generated, "text has no answers to show: use --prompt symbols")
        self.require("positions" not in self.task.columns, "solved examples have no positions: use --prompt symbols")
        self._set("task", replace(self.task, bos=False))  # a text begins once
        tokens, labels = self.task.sample(np.random.default_rng(0), 4, self.task.cells("train")[0])
        self.require(
            ((labels == IGNORE) | (labels == tokens)).all(),
            "answers don't stand in the sequence here, so that a solved one can't be shown: use --prompt symbols",
        )

    name = property(lambda self: self.task.name)
    kind = property(lambda self: self.task.kind)
    version = property(lambda self: self.task.version)
    paste = property(lambda self: self.task.paste)
    data_symbols = property(lambda self: self.task.data_symbols)

    @property
    def drawn_parameters(self) -> dict:
        return self.task.drawn_parameters | {"shots": self.shots}

    @property
    def vocabulary(self) -> list[str]:
        return [*self.task.vocabulary, ANSWER, NEXT]

    @property
    def answer_slots(self) -> int:
        """How many tokens a sequence holds beyond its cell's length: the solved ones too."""
        return self._own_slots + sum(cell.length + self._own_slots + 1 for cell in self.shown_cells())

    @property
    def _own_slots(self) -> int:
        return self.task.slots() + (self.task.answer_slots > 0)

    def shown_cells(self) -> list[Cell]:
        """Return the cells of the solved sequences: spread from the first trained one to the last."""
        cells = sorted(self.task.cells("train"))
        return [cells[round(place)] for place in np.linspace(0, len(cells) - 1, self.shots)]

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        return self.task.splits()

    def trained_cells(self) -> set[Cell]:
        return self.task.trained_cells()

    def fits(self, summary: dict) -> bool:
        return self.task.fits(summary)

    def check_cell(self, cell: Cell) -> None:
        self.task.check_cell(cell)

    def chance(self, cell: Cell) -> float:
        return self.task.chance(cell)

    def ceiling(self, cell: Cell) -> float:
        return self.task.ceiling(cell)

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return the baselines of the sequence to solve alone."""
        return self.task.baselines(cell)

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        lines = []
        for shown in self.shown_cells():
            tokens, _ = self._line(rng, count, shown)
            tokens = np.pad(tokens, ((0, 0), (0, 1)), constant_values=self.control(NEXT[1:-1]))
            lines.append((tokens, np.full_like(tokens, IGNORE)))
        lines.append(self._line(rng, count, cell))
        tokens, labels = zip(*lines, strict=True)
        return np.hstack(tokens), np.hstack(labels)

    def _line(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        """Return tokens and labels of one sequence of the task each, with [ANSWER] before its answer slots."""
        tokens, labels = self.task.sample(rng, count, cell)
        if not self.task.answer_slots:
            return tokens, labels
        marks = np.full(count, self.control(ANSWER[1:-1]))
        return np.insert(tokens, cell.length, marks, axis=1), np.insert(labels, cell.length, IGNORE, axis=1)
