"""A delayed signal: what a linear recurrent network can learn exactly."""

from dataclasses import dataclass

import numpy as np

from .core.cells import Cell, grid
from .core.parameters import MOST_TEST_TOKENS, MOST_TOKENS, Numbers, parameter
from .core.real_task import RealTask


@dataclass(frozen=True, kw_only=True)
class LinearRNNDelay(RealTask):
    """A delayed signal, y_t = x_{t-k}: study 1's link to what recurrent models learn (Cohen-Karlik et al. 2202.04302).

        k = 2:   x     x1  x2  x3  x4  x5        length 5, distance 2; x are standard normal
                 y      -   -  x1  x2  x3        - is not scored

    A linear recurrent network h_t = A h_{t-1} + B x_t, y_t = C h_t is taught at min_length..max_length without `held_out`
    and tested at `test_lengths`, far beyond. The only distance is `delay`. *Reconstructed*: all sizes.
    """

    name = "linear_rnn_delay"
    paper = "2202.04302"
    configs = {"delay_3": {}, "delay_7": {"delay": 7}}

    delay: int = parameter(3, "how many steps back the answer stands", least=0, most=MOST_TOKENS)
    min_length: int = parameter(16, "steps of the shortest trained sequences", least=1, most=MOST_TOKENS)
    max_length: int = parameter(16, "steps of the longest trained sequences", least=1, most=MOST_TOKENS)
    held_out: Numbers = parameter(
        (), "lengths between min_length and max_length that are not trained", least=1, most=MOST_TOKENS
    )
    test_lengths: Numbers = parameter(
        (17, 32, 64, 256, 1024), "longer lengths that are evaluated", least=1, most=MOST_TEST_TOKENS, evaluation=True
    )

    def check(self) -> None:
        self.require(
            0 <= self.delay < self.min_length <= self.max_length,
            f"delay {self.delay}, min_length {self.min_length}, max_length {self.max_length}: "
            "they must satisfy 0 <= delay < min_length <= max_length",
        )
        self.require(
            all(self.min_length < n < self.max_length for n in self.held_out),
            f"held_out {list(self.held_out)} must lie inside {self.min_length}..{self.max_length}",
        )

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        left_out = set(self.held_out)
        trained = [n for n in range(self.min_length, self.max_length + 1) if n not in left_out]
        return grid(trained, [self.delay], [*self.held_out, *self.test_lengths])

    def check_cell(self, cell: Cell) -> None:
        self.require(cell.distance == self.delay, f"distance is {cell.distance}; this task's is {self.delay}")
        self.require(cell.length > self.delay, f"delay {self.delay} is longer than a sequence of {cell.length}")

    def sample(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        self.check_cell(cell)
        inputs = rng.standard_normal((count, cell.length, 1), dtype=np.float32)
        targets = np.full((count, cell.length), np.nan, np.float32)
        targets[:, self.delay :] = inputs[:, : cell.length - self.delay, 0]
        return inputs, targets

    def oracle(self, inputs: np.ndarray) -> dict[int, float]:
        return {t: float(inputs[t - self.delay, 0]) for t in range(self.delay, len(inputs))}
