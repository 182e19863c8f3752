"""What the tests of sweeps share."""

import time

from tests.helpers.training_helpers import RUN

BASE = {key: RUN[key] for key in ("model", "task", "train", "evaluation")}


UNSAVED = {"steps": 600, "validate_every": 0, "save_every": 0}


def small_sweep(**panel) -> dict:
    arms = {"rope": {"model": {"position_encoding": "rope"}}, "none": {"model": {"position_encoding": "none"}}}
    return {"name": "small", "panels": {"study": {"base": BASE, "arms": arms, "seeds": [0, 1]} | panel}}


def wait_for(condition, seconds: float = 120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
