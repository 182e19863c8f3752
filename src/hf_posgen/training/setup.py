"""What training needs beside its loop: the learning rate, and the ways it may end."""

import math


class Stopped(RuntimeError):
    """Training ended before its last step for a reason that the message names."""


class Terminated(Stopped):
    """SIGTERM came: the state is saved, and the same command goes on."""


def learning_rate(train, step: int) -> float:
    """Of step 0, 1, ...: a function of the step alone, whatever the number of processes."""
    if step < train.warmup_steps:
        return train.learning_rate * (step + 1) / train.warmup_steps
    if train.schedule == "constant":
        return train.learning_rate
    share = (step - train.warmup_steps) / max(1, train.steps - train.warmup_steps)
    return train.learning_rate * 0.5 * (1 + math.cos(math.pi * share))
