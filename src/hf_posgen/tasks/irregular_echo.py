"""An echo of a signal that was sampled at irregular times."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from .core.cells import Cell, grid
from .core.parameters import MOST_TEST_TOKENS, MOST_TOKENS, Numbers, parameter
from .core.real_task import RealTask


@dataclass(frozen=True, kw_only=True)
class IrregularEcho(RealTask):
    """An echo of a signal sampled at irregular times: what did it hold `lag` time units ago?

        time    0.0  0.4  1.7  2.2  3.9  4.1        length 6, distance (lag) 2
        value    a    b    c    d    e    f
        target   -    -    -    a    c    c         the last value at or before time - 2; - is not scored: before the start

    Inputs (D = 3): the value (standard normal), the time since the event before (0 at first), and the lag. Times between
    events are exponential ("poisson") or uniform in 0.5..1.5 ("jitter"), 1 in the mean: `lag` time units are about as many
    events, and only the times tell which one. Training draws the lag of each sequence from lag_min..lag_max without
    `held_out`; evaluated beside: `test_lags`, `test_windows`. A sequence that lasts less than its lag has nothing to score.
    *Reconstructed* throughout: the articles speak of temporal data streams and define no such task.
    """

    name = "irregular_echo"
    configs = {"poisson_4_8": {}, "jitter_4_8": {"times": "jitter"}}

    times: Literal["poisson", "jitter"] = parameter("poisson", "how the times between events are drawn")
    window: int = parameter(64, "events of the trained sequences", least=2, most=MOST_TOKENS)
    lag_min: int = parameter(4, "the smallest trained lag, in time units", least=1, most=MOST_TOKENS)
    lag_max: int = parameter(8, "the largest trained lag, in time units", least=1, most=MOST_TOKENS)
    held_out: Numbers = parameter(
        (), "lags between lag_min and lag_max that are not trained", least=1, most=MOST_TOKENS
    )
    test_lags: Numbers = parameter(
        (1, 2, 3, 9, 10, 12, 16, 24, 32),
        "unseen lags that are evaluated",
        least=1,
        most=MOST_TEST_TOKENS,
        evaluation=True,
    )
    test_windows: Numbers = parameter(
        (128, 256), "longer sequences that are evaluated, in events", least=2, most=MOST_TEST_TOKENS, evaluation=True
    )

    def check(self) -> None:
        self.require(
            1 <= self.lag_min <= self.lag_max < self.window,
            f"lag_min {self.lag_min}, lag_max {self.lag_max}, window {self.window}: "
            "they must satisfy 1 <= lag_min <= lag_max < window",
        )
        self.require(
            all(self.lag_min < d < self.lag_max for d in self.held_out),
            f"held_out {list(self.held_out)} must lie inside {self.lag_min}..{self.lag_max}",
        )

    @cached_property
    def trained_lags(self) -> np.ndarray:
        left_out = set(self.held_out)
        return np.array([d for d in range(self.lag_min, self.lag_max + 1) if d not in left_out])

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        new = [*self.held_out, *self.test_lags]
        return grid([self.window], self.trained_lags.tolist(), self.test_windows, new, mixed=True)

    def check_cell(self, cell: Cell) -> None:
        lag = self.lag_max if cell.distance is None else cell.distance
        self.require(
            1 <= lag < cell.length, f"a lag of {lag} does not fit a sequence of {cell.length}: 1 <= lag < length"
        )

    def sample(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        self.check_cell(cell)
        T = cell.length
        inputs = np.zeros((count, T, 3), np.float32)
        inputs[..., 0] = rng.standard_normal((count, T), dtype=np.float32)
        steps = inputs[:, 1:, 1]
        steps[:] = rng.standard_exponential(steps.shape) if self.times == "poisson" else rng.random(steps.shape) + 0.5
        lag = np.full(count, cell.distance) if cell.distance is not None else rng.choice(self.trained_lags, count)
        inputs[..., 2] = lag[:, None]
        source = self._sources(np.cumsum(inputs[..., 1], axis=1, dtype=np.float64), lag)
        values = np.take_along_axis(inputs[..., 0], np.maximum(source, 0), 1)
        return inputs, np.where(source >= 0, values, np.float32(np.nan))

    @staticmethod
    def _sources(times_NT: np.ndarray, lag_N: np.ndarray) -> np.ndarray:
        """Return the last event at or before each time minus the lag, (N, T); -1 where there is none."""
        N, T = times_NT.shape
        apart = np.arange(N)[:, None] * (times_NT.max() + lag_N.max() + 1.0)  # one line of time for all rows
        due = (times_NT - lag_N[:, None] + apart).ravel()
        event = np.searchsorted((times_NT + apart).ravel(), due, side="right").reshape(N, T) - 1
        return np.maximum(event - np.arange(N)[:, None] * T, -1)

    def oracle(self, inputs: np.ndarray) -> dict[int, float]:
        answers, now, times = {}, 0.0, []
        for t, (_, step, lag) in enumerate(inputs.tolist()):
            now += step
            times.append(now)
            before = [s for s in range(t + 1) if times[s] <= now - lag]
            if before:
                answers[t] = float(inputs[before[-1], 0])
        return answers

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return the error of counting `lag` events back, without looking at the times, on 1,000 sequences."""
        inputs, targets = self.sample(np.random.default_rng(0), 1000, cell)
        back = np.arange(cell.length) - inputs[:, :1, 2].astype(int)
        guess = np.where(back >= 0, np.take_along_axis(inputs[..., 0], np.maximum(back, 0), 1), 0.0)
        return {"event_count": float(np.nanmean((guess - targets) ** 2))}
