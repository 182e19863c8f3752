"""One point of the evaluation grid, and the named lists of points."""

from dataclasses import dataclass

SPLITS = ("train", "validation", "test", "longer", "farther", "nearer", "both")
HELD_OUT = ("longer", "farther", "nearer", "both")


@dataclass(frozen=True)
class Cell:
    """length: tokens of a sequence, without the anchor token and answer slots. distance: how far an answer stands from
    what it depends on, in tokens, as the task draws it; None where each answer draws its own from the trained range."""

    length: int
    distance: int | None

    def __str__(self) -> str:
        return f"length {self.length}, distance {'mixed' if self.distance is None else self.distance}"


def refuse_overlap(splits: dict[str, tuple[Cell, ...]], trained: set[Cell]) -> None:
    """`ValueError` where a split that claims to be unseen holds a trained cell."""
    for split in HELD_OUT:
        for cell in splits.get(split, ()):
            if cell in trained:
                raise ValueError(f"split {split!r} holds a cell that training sees ({cell}); choose others")
