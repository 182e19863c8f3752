"""Tasks with a window of so many tokens and a range of trained distances."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .cells import Cell, grid, shorter, spread
from .parameters import MOST_SYMBOLS, MOST_TEST_TOKENS, MOST_TOKENS, Numbers, parameter
from .token_task import TokenTask


@dataclass(frozen=True, kw_only=True)
class WindowTask(TokenTask):
    """What tasks with a window of so many tokens and a range of trained distances share.

    Training draws the distance of each sequence from d_min..d_max (by default the lower half of what the window can hold)
    without `held_out`, in windows of `window` tokens and of the `shorter_windows` (by default three quarters and seven
    eighths of it, where they hold d_max): who learns at one length learns that length. Evaluated at the same windows:
    `probes` among the trained distances; at the longest: `test_distances` and `held_out`; at `test_windows`: the same. By
    default there are up to eight of each, denser where they are small.
    """

    symbols: int = parameter(16, "how many data symbols there are", least=2, most=MOST_SYMBOLS)
    window: int = parameter(64, "tokens of the longest trained sequences", least=1, most=MOST_TOKENS)
    shorter_windows: Numbers | None = parameter(
        None, "tokens of the shorter trained sequences", least=1, most=MOST_TOKENS
    )
    d_min: int | None = parameter(None, "the smallest trained distance", least=0, most=MOST_TOKENS)
    d_max: int | None = parameter(None, "the largest trained distance", least=0, most=MOST_TOKENS)
    held_out: Numbers = parameter(
        (), "distances between d_min and d_max that are not trained", least=0, most=MOST_TOKENS
    )
    probes: Numbers | None = parameter(
        None, "trained distances that are evaluated", least=0, most=MOST_TOKENS, evaluation=True
    )
    test_distances: Numbers | None = parameter(
        None, "unseen distances that are evaluated", least=0, most=MOST_TEST_TOKENS, evaluation=True
    )
    test_windows: Numbers | None = parameter(
        None, "unseen lengths that are evaluated", least=1, most=MOST_TEST_TOKENS, evaluation=True
    )

    def possible(self, length: int) -> range:
        """Return the distances that a sequence of this length can hold."""
        raise NotImplementedError

    @property
    def _range(self) -> tuple[int, int]:
        """d_min and d_max as given, or by default."""
        can = self.possible(self.window)
        low = can[0] if self.d_min is None else self.d_min
        return low, max(low, can[-1] // 2) if self.d_max is None else self.d_max

    def _trained(self, low: int, high: int) -> list[int]:
        left_out = set(self.held_out)
        return [d for d in range(low, high + 1) if d not in left_out]

    def derived(self) -> dict:
        (low, high), can = self._range, self.possible(self.window)
        trained = self._trained(low, high)
        new = spread([d for d in can if d < low]) + spread([d for d in can if d > high])
        return {
            "d_min": low,
            "d_max": high,
            "probes": spread(trained),
            "test_distances": new,
            "test_windows": (2 * self.window,),
            "shorter_windows": tuple(n for n in shorter(self.window) if high in self.possible(n)),
        }

    def check(self) -> None:
        can = self.possible(self.window)
        self.require(len(can) > 0, f"window {self.window} is too short for this task")
        low, high = self._range
        self.require(
            can[0] <= low <= high <= can[-1],
            f"d_min {low}, d_max {high}: they must satisfy {can[0]} <= d_min <= d_max <= {can[-1]} "
            f"in a window of {self.window}",
        )
        for n in self.shorter_windows or ():
            holds = low in self.possible(n) and high in self.possible(n)
            self.require(
                holds and n < self.window, f"shorter_windows {n}: below {self.window}, and {low} to {high} in it"
            )
        self.require(
            all(low < d < high for d in self.held_out), f"held_out {list(self.held_out)} must lie inside {low}..{high}"
        )

    @property
    def data_symbols(self) -> int:
        return self.symbols

    @property
    def windows(self) -> tuple[int, ...]:
        """The trained lengths."""
        return (*self.shorter_windows, self.window)

    @cached_property
    def trained_distances(self) -> np.ndarray:
        return np.array(self._trained(self.d_min, self.d_max))

    @cached_property
    def _splits(self) -> dict[str, tuple[Cell, ...]]:
        trained = self.trained_distances.tolist()
        stray = set(self.probes) - set(trained)
        self.require(not stray, f"probes {sorted(stray)} are no trained distances")
        new = [*self.held_out, *self.test_distances]
        return grid(self.windows, trained, self.test_windows, new, mixed=True, probes=self.probes)

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        return dict(self._splits)

    def trained_cells(self) -> set[Cell]:
        return {Cell(n, d) for n in self.windows for d in (None, *self.trained_distances.tolist())}

    def check_cell(self, cell: Cell) -> None:
        can = self.possible(cell.length)
        for d in (self.d_min, self.d_max) if cell.distance is None else (cell.distance,):
            self.require(
                d in can,
                f"distance {d} does not fit a sequence of {cell.length}: "
                + (f"allowed: {can[0]} to {can[-1]}" if len(can) else "it is too short"),
            )

    def distances(self, rng: np.random.Generator, count: int, cell: Cell) -> np.ndarray:
        """Draw the distance of each sequence, (count,)."""
        if cell.distance is not None:
            return np.full(count, cell.distance)
        return self.trained_distances[rng.integers(len(self.trained_distances), size=count)]
