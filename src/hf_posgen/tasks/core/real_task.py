"""Real-valued tasks: a signal in, a signal out.

They share cells, splits, `examples`, `load_task` and the export with the tasks over a vocabulary, and differ in this:

- `sample` returns inputs (N, T, D) and targets (N, T), both float32; a target of NaN is not scored.
- A target stands where the answer is due: nothing is shifted, and there are no answer slots and no anchor token. The
  output at t may read the inputs up to and with t.
- The score is the normalised mean squared error (of the error, in units of the signal's variance): 1 for a model that
  always answers the mean, 0 for a perfect one. `chance`, `ceiling` and `baselines` are such errors: less is better.
- Columns: inputs, targets, length, distance, index. There is no vocabulary and no tokenizer, so `posgen train`, which
  trains language models, refuses them: they are for models that map a signal to a signal.
"""

from dataclasses import dataclass

import numpy as np

from .cells import Cell
from .task import Task


@dataclass(frozen=True, kw_only=True)
class RealTask(Task):
    """What the real-valued tasks share (see the module's text)."""

    continuous = True
    metric = "mean_squared_error"
    paste = False
    columns = ("inputs", "targets")

    @property
    def vocab_size(self) -> int:
        raise ValueError(f"task {self.name!r} is real-valued: it has no vocabulary, and no language model learns it")

    def oracle(self, inputs: np.ndarray) -> dict[int, float]:
        """Return {place: answer} for one sequence (T, D), by the rule, in plain Python; the answer at t reads places up
        to t."""
        raise NotImplementedError

    def chance(self, cell: Cell) -> float:
        """Return the error of always answering 0, the mean: 1."""
        return 1.0

    def ceiling(self, cell: Cell) -> float:
        """Return the error of a perfect model: 0."""
        return 0.0
