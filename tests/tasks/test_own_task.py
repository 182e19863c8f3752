"""A task that lives in a user's own file: trained, resumed, evaluated, loaded and exported, here and in processes."""

import os
import subprocess
import sys

import datasets
import numpy as np
import pytest
import yaml

import hf_posgen
from hf_posgen.run.build import build_run, to_tree
from hf_posgen.tasks import TASKS, TokenTask, build_task, config_name, examples, export_task, load_task, task_digest
from hf_posgen.tasks.dataset.published import benchmark, named

SOURCE = '''
"""A task of one's own."""

from dataclasses import dataclass

import numpy as np

from hf_posgen import register_task
from hf_posgen.tasks import IGNORE, Cell, TokenTask, grid, parameter


@dataclass(frozen=True, kw_only=True)
class Backwards(TokenTask):
    """Say the symbols backwards.

        x1 x2 x3 [TURN] (x3 x2 x1)      length 7, distance 2: the first answer is 2 tokens after its source
    """

    configs = {"short": {}, "wide": {"symbols": 9}}
    control_names = ("TURN",)
    paste = True

    symbols: int = parameter(5, "how many symbols there are", least=2, most=100)
    longest: int = parameter(4, "symbols of the longest trained strings", least=2, most=100)

    @property
    def data_symbols(self):
        return self.symbols

    def splits(self):
        trained = [2 * n + 1 for n in range(2, self.longest + 1)]
        return grid(trained, [2], [2 * self.longest + 3])

    def check_cell(self, cell):
        self.require(cell.length % 2 == 1 and cell.distance == 2, f"{cell}: an odd length, and distance 2")

    def draw(self, rng, count, cell):
        n = cell.length // 2
        x = rng.integers(self.symbols, size=(count, n))
        tokens = np.hstack([x, np.full((count, 1), self.control("TURN")), x[:, ::-1]])
        labels = np.where(np.arange(cell.length) > n, tokens, IGNORE)
        return tokens, labels


register_task("backwards_of_a_user", Backwards)
'''
RUN = {
    "imports": ["backwards_of_a_user"],
    "task": {"name": "backwards_of_a_user", "longest": 3},
    "model": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1},
    "train": {"steps": 4, "batch_size": 4, "cpu": True, "save_every": 2, "trackers": []},
    "evaluation": {"count": 8},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "backwards_of_a_user.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(RUN), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    TASKS.pop("backwards_of_a_user", None)
    sys.modules.pop("backwards_of_a_user", None)


def posgen(folder, *arguments):
    environment = {**os.environ, "HF_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "hf_posgen", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_run_on_it(folder):
    """Trained, broken off and resumed, evaluated again; each time from the run's own record."""
    from hf_posgen.evaluation.runs import evaluate
    from hf_posgen.training.trainer import Stopped, train

    run = build_run(RUN)
    assert list(to_tree(run)["imports"]) == ["backwards_of_a_user"]

    def stop(step):
        if step == 3:
            raise Stopped("here")

    with pytest.raises(Stopped):
        train(run, folder / "run", quiet=True, on_step=stop)
    train(run, folder / "run", quiet=True)
    rows = evaluate(folder / "run", count=4)
    assert {row["task"] for row in rows} == {"backwards_of_a_user"} and {row["length"] for row in rows} == {5, 7, 9}
    assert not named(run.task) and benchmark(run.task)[0] == "posgen-backwards-of-a-user"


def test_its_data(folder):
    build_run(RUN)
    task = build_task("backwards_of_a_user")
    rows = load_task("backwards_of_a_user", split="test", cache_dir=str(folder / "cache"), count=5, train_count=5)
    wanted = examples(task, 0, "test", task.cells("test")[0], 0, 5)[0]
    assert np.array_equal(rows[:5]["input_ids"], wanted) and rows.column_names[:2] == ["input_ids", "labels"]
    out = export_task("backwards_of_a_user", folder / "hub", count=5, train_count=5)
    opened = datasets.load_dataset(str(out), "wide", split="test", cache_dir=str(folder / "cache"))
    assert len(opened) == 5 * len(task.cells("test"))
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "drawn by `backwards_of_a_user.Backwards`, which is no part of hf_posgen" in card
    assert "Say the symbols backwards" in card and "hf_posgen.load_task" not in card
    assert "license:" not in card and "Apache-2.0" not in card, "of another's task its author decides"
    assert config_name({"name": "backwards_of_a_user", **task.parameters}) == "short"


def test_its_code_is_part_of_what_it_is(folder):
    """Of the digest in a row, and of the key under which data are prepared: an edit reads nothing that was drawn before."""
    build_run(RUN)
    before = task_digest("backwards_of_a_user")
    first = load_task("backwards_of_a_user", split="test", cache_dir=str(folder / "cache"), count=5, train_count=5)[0]
    edited = SOURCE.replace("size=(count, n))", "size=(count, n)) * 0")
    (folder / "backwards_of_a_user.py").write_text(edited, encoding="utf-8")
    sys.modules.pop("backwards_of_a_user")
    build_run(RUN)
    assert task_digest("backwards_of_a_user") != before
    again = load_task("backwards_of_a_user", split="test", cache_dir=str(folder / "cache"), count=5, train_count=5)[0]
    assert any(first["input_ids"][:2]) and not any(again["input_ids"][:2])


def test_the_command_line(folder):
    done = posgen(folder, "train", "run.yaml", "--out", "run", "--train.steps", 1)
    assert done.returncode == 0, done.stderr[-2000:]
    arguments = ("--imports", "backwards_of_a_user", "--count", 3, "--train-count", 3, "--configs", "short")
    done = posgen(folder, "data", "export", "backwards_of_a_user", "hub", *arguments)
    assert done.returncode == 0 and (folder / "hub" / "README.md").is_file(), done.stderr[-2000:]
    done = posgen(folder, "data", "export", "backwards_of_a_user", "other")
    assert done.returncode == 2 and "unknown task 'backwards_of_a_user'" in done.stderr


class NoDataclass(TokenTask):
    """Never told apart by its fields."""


@pytest.mark.parametrize(
    ("name", "cls", "reason"),
    [
        ("Mine", TASKS["induction"], "letters, digits and underscores in lower case, not 'Mine'"),
        ("mine", dict, "is no subclass of hf_posgen.tasks.Task"),
        ("mine", NoDataclass, r"must be a @dataclass\(frozen=True, kw_only=True\)"),
        ("fixed_offset", TASKS["induction"], "'fixed_offset' exists already"),
    ],
)
def test_what_can_be_no_task(name, cls, reason):
    with pytest.raises(ValueError, match=reason):
        hf_posgen.register_task(name, cls)
    assert TASKS["induction"].name == "induction" and name not in TASKS or name == "fixed_offset"
