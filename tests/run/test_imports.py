"""A run with an encoding that lives in a user's own file, by the roads a user takes: each in a process of its own."""

import os
import subprocess
import sys

import pytest

from hf_posgen.run.build import build_run, identity, to_tree
from hf_posgen.run.imports import import_modules

SOURCE = '''
"""An encoding of one's own."""

from hf_posgen import PositionEncoding, register
from hf_posgen.model.attention_bias import ByDistance


class Recency(PositionEncoding):
    """Adds -rate · log(1 + distance) to every head."""

    def __init__(self, config, *, rate: float = 1.0):
        super().__init__(config)
        self.rate = rate

    def bias(self, queries, keys):
        heads = self.config.num_attention_heads
        return ByDistance(lambda d: (-self.rate * d.to(queries.dtype).log1p()).expand(heads, *d.shape))


register("recency_of_a_user", Recency)
'''
SWEEP = """
name: mine
panels:
  offset:
    base:
      imports: [recency_of_a_user]
      task: {name: fixed_offset, test_lengths: [17]}
      model: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 1}
      train: {steps: 2, batch_size: 4, cpu: true}
      evaluation: {splits: [validation, test], count: 8}
    arms: {mine: {model: {position_encoding: {name: recency_of_a_user, rate: 0.5}}}}
    seeds: [0, 1]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "recency_of_a_user.py").write_text(SOURCE)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return tmp_path


def posgen(folder, *arguments):
    environment = {**os.environ, "HF_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "hf_posgen", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_sweep_trains_it_in_its_workers_and_others_measure_it(folder):
    done = posgen(folder, "sweep", "sweep.yaml", "--out", "out")
    assert done.returncode == 0, done.stderr[-2000:]
    (run, _) = sorted((folder / "out").glob("offset-mine-*"))
    assert (run / "external_recency_of_a_user.py").is_file()
    done = posgen(folder, "evaluate", run, "--count", 4)
    assert done.returncode == 0, done.stderr[-2000:]
    (folder / "recency_of_a_user.py").write_text(SOURCE.replace("rate: float = 1.0", "rate: float = 2.0"))
    done = posgen(folder, "evaluate", run, "--count", 4)
    assert done.returncode == 2 and "has changed since this run was made" in done.stderr


def test_the_file_is_part_of_what_makes_a_run_this_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (folder / "empty_module_of_a_user.py").write_text("")
    plain = to_tree(build_run({}))
    assert "imports" not in identity(plain)
    assert list(identity(to_tree(build_run({"imports": ["empty_module_of_a_user"]})))["imports"].values()) == [
        "e3b0c442"
    ]


@pytest.mark.parametrize(
    "given, reason",
    [
        (["no_such_module_here"], "be a file no_such_module_here.py in the current folder"),
        (["broken_module_of_a_user"], "can't be imported: NameError"),
        (3, "must be a list of module names"),
    ],
)
def test_what_cannot_be_imported(folder, monkeypatch, given, reason):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (folder / "broken_module_of_a_user.py").write_text("nobody")
    with pytest.raises(ValueError, match=reason):
        import_modules(given)
