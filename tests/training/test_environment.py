"""What accelerate reads from the environment never changes a run in silence."""

import inspect
import json
import os
import re
import warnings

import accelerate.accelerator
import accelerate.state
import accelerate.utils.dataclasses
import pytest
import torch

from hf_posgen.run.folder import RunFolder
from hf_posgen.training.environment import DECIDED, PLAIN, PREFIXES, REFUSED
from hf_posgen.training.trainer import train
from tests.helpers.training_helpers import assert_same_run, small_run, weights

SHORT = {"train": {"steps": 4, "validate_every": 0, "save_every": 0}}
SAY_OTHERWISE = {
    "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4",
    "ACCELERATE_MIXED_PRECISION": "bf16",
    "ACCELERATE_DYNAMO_BACKEND": "eager",
    "ACCELERATE_DYNAMO_MODE": "max-autotune",
    "ACCELERATE_GRADIENT_CLIPPING": "0.01",
    "ACCELERATE_FP8_FORMAT": "E4M3",
    "ACCELERATE_DOWNCAST_BF16": "yes",
    "ACCELERATE_TORCH_DEVICE": "meta",
    "ACCELERATE_USE_CPU": "false",
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return train(small_run(**SHORT), tmp_path_factory.mktemp("plain") / "run", evaluate=False, quiet=True)


@pytest.mark.parametrize("name", SAY_OTHERWISE)
def test_a_variable_that_says_otherwise_is_named_not_used_and_recorded(plain, tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, SAY_OTHERWISE[name])
    with pytest.warns(UserWarning, match=f"{name}={SAY_OTHERWISE[name]} is not used: the run says train"):
        out = train(small_run(**SHORT), tmp_path / "run", evaluate=False, quiet=True)
    assert_same_run(out, plain)
    (start,) = json.loads(RunFolder(out).environment.read_text(encoding="utf-8"))
    assert start["variables"][name] == os.environ[name] == SAY_OTHERWISE[name], "it is set again for others"
    assert start["device"] == "cpu" and start["precision"] == "no" and start["processes"] == 1


def test_every_variable_that_a_run_decides_is_tried_above():
    assert all(any(name.startswith(beginning) for name in SAY_OTHERWISE) for beginning in DECIDED)


def test_what_the_launcher_sets_by_itself_is_no_contradiction(plain, tmp_path, monkeypatch):
    for name in ("ACCELERATE_MIXED_PRECISION", "ACCELERATE_DYNAMO_BACKEND"):
        monkeypatch.setenv(name, "no")
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "1")
    monkeypatch.setenv("ACCELERATE_DYNAMO_MODE", "default")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = train(small_run(**SHORT), tmp_path / "run", evaluate=False, quiet=True)
    assert_same_run(out, plain)


@pytest.mark.parametrize("name", REFUSED)
def test_another_way_of_training_is_refused_before_a_folder_is_made(tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, "true")
    with pytest.raises(ValueError, match=f"{name} is set, and a run can't be trained with"):
        train(small_run(**SHORT), tmp_path / "run", evaluate=False, quiet=True)
    assert not (tmp_path / "run").exists()


def test_what_the_run_leaves_open_is_taken_and_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    run = small_run(train={"steps": 2, "cpu": False, "validate_every": 0, "save_every": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = train(run, tmp_path / "run", evaluate=False, quiet=True)
    (start,) = json.loads(RunFolder(out).environment.read_text(encoding="utf-8"))
    assert start["variables"]["ACCELERATE_USE_CPU"] == "true" and start["device"] == "cpu"
    assert all(tensor.dtype == torch.float32 for tensor in weights(out).values())


def test_every_start_is_recorded(tmp_path):
    class Cut(Exception):
        pass

    def cut(step):
        if step == 7:
            raise Cut

    with pytest.raises(Cut):
        train(small_run(), tmp_path / "run", evaluate=False, quiet=True, on_step=cut)
    train(small_run(), tmp_path / "run", evaluate=False, quiet=True)
    starts = json.loads(RunFolder(tmp_path / "run").environment.read_text(encoding="utf-8"))
    assert [start["after_step"] for start in starts] == [0, 5]


def test_no_variable_that_accelerate_reads_is_unknown_here():
    """Those of the launcher (ranks, addresses, ports) and of trackers aside."""
    others = (
        r"RANK|LOCAL|WORLD_SIZE|MASTER|PMI|OMPI|MV2|NCCL|PYTORCH|NODE|CCL|SAGEMAKER|HPU|KMP|MLU|TPU|NPROC|env_prefix"
    )
    read = set()
    for module in (accelerate.accelerator, accelerate.state, accelerate.utils.dataclasses):
        source = inspect.getsource(module)
        read |= set(re.findall(r"(?:environ(?:\.get)?[\[(]|from_env\()\s*\[?\"([A-Z][A-Z0-9_]+)\"", source))
    assert len(read) > 20
    unknown = {name for name in read if not name.startswith(PREFIXES) and name not in PLAIN}
    assert not {name for name in unknown if not re.search(others, name)}
