"""Rows written by hand, and run folders that hold them: what cards are rendered from."""

import pytest
import yaml

from hf_posgen.common.files import write_rows
from hf_posgen.tasks import config_spec, resolve_task

REPO = "lab/posgen-rope"
FIXED, COPY = resolve_task("fixed_offset"), resolve_task(config_spec("delay_copy", "full_15_25"))
MODEL = {
    "hidden_size": 64,
    "head_dim": 16,
    "out_of_range": "error",
    "position_encoding": {"name": "rope", "base": 10000.0},
    "position_sampler": {"name": "sequential"},
    "logit_scale": {"name": "none"},
    "mixer": {"name": "softmax"},
}
TRAIN = {"steps": 100, "batch_size": 8, "gradient_accumulation": 2, "learning_rate": 0.001, "schedule": "constant"}
TRAIN |= {"warmup_steps": 0, "weight_decay": 0.0, "clip": 1.0}


def row(split, length, distance=3, value=0.9, low=0.8, high=0.95, **more):
    scores = {"exact_match": value, "exact_match_low": low, "exact_match_high": high}
    tokens = {"token_accuracy": value, "token_accuracy_low": low, "token_accuracy_high": high}
    facts = {"seed": 3, "fit": True, "chance": 0.0625, "ceiling": 1.0, "baselines": {"bag_of_words": 0.2}, "count": 100}
    facts |= {"parameters": 1234, "dtype": "float32", "tokens_seen": 99, "step": 100, "selected_on": "last step"}
    facts |= {"train_length": 16, "train_distance": [3, 3], "arm": "rope", "encoding": "rope", "task": "fixed_offset"}
    return {"split": split, "length": length, "distance": distance} | scores | tokens | facts | more


def paste_row(split, distance, first=0.5, rest=0.9, **facts):
    more = facts | {
        f"{name}_accuracy{end}": value
        for name, value in (("first", first), ("rest", rest))
        for end in ("", "_low", "_high")
    }
    return row(split, 256, distance, train_distance=[15, 25], **more)


@pytest.fixture
def folder(tmp_path):
    def make(rows=(), task=FIXED, model=MODEL, train=TRAIN):
        run = {"arm": "rope", "seed": 3, "model": model, "task": task, "train": train, "evaluation": {}, "panel": ""}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(run, sort_keys=False))
        write_rows(tmp_path / "results.jsonl", list(rows))
        return tmp_path

    return make
