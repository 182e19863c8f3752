"""One point of the evaluation grid, and the named lists of points."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering

SPLITS = ("train", "validation", "test", "longer", "farther", "nearer", "between", "both")
HELD_OUT = ("longer", "farther", "nearer", "between", "both")


@total_ordering
@dataclass(frozen=True)
class Cell:
    """length: tokens of a sequence, without the anchor token and answer slots. distance: how far an answer stands from
    what it depends on, in tokens, as the task draws it; None where each answer draws its own from the trained range."""

    length: int
    distance: int | None

    def __str__(self) -> str:
        return f"L{self.length} {'mixed' if self.distance is None else f'd{self.distance}'}"

    def __lt__(self, other: "Cell") -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, int]:
        """What cells are sorted by: the key to give where there are many."""
        return self.length, -1 if self.distance is None else self.distance


def grid(
    lengths: Iterable[int],
    distances: Iterable[int],
    new_lengths: Iterable[int] = (),
    new_distances: Iterable[int] = (),
    *,
    mixed: bool = False,
    probes: Iterable[int] | None = None,
) -> dict[str, tuple[Cell, ...]]:
    """The splits of a task whose two axes are free of each other.

    `lengths` and `distances` are trained, all pairs of them (with `mixed`, a training sequence draws its distances
    itself); the new ones are only evaluated. Of the trained distances only `probes` are evaluated, where they are many.
    Unseen distances are evaluated at the longest trained length:

                        nearer   trained   between   farther
        trained length  nearer   test      between   farther
        inside a gap      -      between     -         -
        beyond          both     longer    both      both

    Raises `ValueError` for a new length below the trained ones: no split evaluates it.
    """
    lengths, distances = sorted(set(lengths)), sorted(set(distances))
    low, high, longest = distances[0], distances[-1], lengths[-1]
    probes = distances if probes is None else sorted(set(probes))
    test = [Cell(n, d) for n in lengths for d in probes]
    new_lengths = sorted(set(new_lengths))
    inside, beyond = [n for n in new_lengths if n < longest], [n for n in new_lengths if n >= longest]
    new_distances = sorted(set(new_distances))
    if any(n < lengths[0] for n in inside):
        raise ValueError(
            f"length {min(inside)} is below the trained ones ({lengths[0]} to {longest}): no split evaluates it"
        )
    gap = [d for d in new_distances if low <= d <= high]
    splits = {
        "train": [Cell(n, None) for n in lengths] if mixed else [Cell(n, d) for n in lengths for d in distances],
        "validation": test,
        "test": test,
        "longer": [Cell(n, d) for n in beyond for d in probes],
        "farther": [Cell(longest, d) for d in new_distances if d > high],
        "nearer": [Cell(longest, d) for d in new_distances if d < low],
        "between": [Cell(n, d) for n in inside for d in probes] + [Cell(longest, d) for d in gap],
        "both": [Cell(n, d) for n in beyond for d in new_distances],
    }
    return {name: tuple(cells) for name, cells in splits.items()}


def spread(values: Iterable[int], count: int = 8) -> tuple[int, ...]:
    """At most `count` of the values, from the first to the last, denser where they are small."""
    values = sorted(set(values))
    if len(values) <= count:
        return tuple(values)
    ratio = (len(values)) ** (1 / (count - 1))
    picked = {min(len(values) - 1, round(ratio**i) - 1) for i in range(count)}
    return tuple(values[i] for i in sorted(picked))


def shorter(window: int) -> tuple[int, ...]:
    """Return the windows that training mixes with one by default."""
    return 3 * window // 4, 7 * window // 8


def refuse_overlap(task: str, splits: dict[str, tuple[Cell, ...]], trained: set[Cell]) -> None:
    """`ValueError` where a split that claims to be unseen holds a trained cell, or a cell stands in two of them."""
    owner: dict[Cell, str] = {}
    for split in HELD_OUT:
        for cell in splits.get(split, ()):
            if cell in trained:
                raise ValueError(f"task {task!r}: split {split!r} holds {cell}, which training sees; choose others")
            if owner.setdefault(cell, split) != split:
                raise ValueError(f"task {task!r}: {cell} stands in {owner[cell]!r} and in {split!r}")
