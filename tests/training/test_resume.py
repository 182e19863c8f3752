"""An interrupted and resumed run is bit-equal to the straight one, however it was interrupted."""

import os
import random
import resource
import shutil
import signal
import time

import pytest

from hf_posgen.run.folder import RunFolder
from hf_posgen.run.saved_state import fault
from hf_posgen.training.trainer import Stopped, train
from tests.helpers.training_helpers import PROCESSES, assert_same_run, curve, finish, kill_after, small_run, start


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return train(small_run(), tmp_path_factory.mktemp("straight") / "run", evaluate=False, quiet=True)


class PowerCut(Exception):
    pass


def cut_at(step):
    def on_step(now):
        if now == step:
            raise PowerCut

    return on_step


@pytest.mark.parametrize("step", [1, 5, 7, 11, 12])
def test_cut_at_a_step(straight, tmp_path, step):
    with pytest.raises(PowerCut):
        train(small_run(), tmp_path / "run", evaluate=False, quiet=True, on_step=cut_at(step))
    train(small_run(), tmp_path / "run", evaluate=False, quiet=True)
    assert_same_run(tmp_path / "run", straight)


def kill_again_and_again(tmp_path, straight, kills: int, world: int = 1) -> None:
    run = small_run(train={"save_every": 1})  # most of the time goes into saving: that is where it is dangerous
    chance, done = random.Random(0), 0
    finish(start(run, tmp_path / "first", world))  # the server imports torch once
    began = time.monotonic()
    assert finish(start(run, tmp_path / "whole", world)) == [0] * world
    lasted = time.monotonic() - began
    out = tmp_path / "run"
    for attempt in range(10 * kills):
        done += kill_after(start(run, out, world), chance.uniform(0.1, 0.7) * lasted)
        for state in RunFolder(out).saved_states():
            assert fault(state) is None, "a state has its name before it is whole"
        if (out / "model.safetensors").exists():
            shutil.move(out, tmp_path / f"done{attempt}")
            assert_same_run(tmp_path / f"done{attempt}", tmp_path / "whole")
        if done == kills:
            break
    assert done == kills
    assert finish(start(run, out, world)) == [0] * world
    assert_same_run(out, tmp_path / "whole")
    if straight is not None:
        assert_same_run(out, straight)


def test_killed_at_random_moments(tmp_path, straight):
    kill_again_and_again(tmp_path, straight, kills=10)


@pytest.mark.slow
def test_two_processes_killed_at_random_moments(tmp_path):
    kill_again_and_again(tmp_path, None, kills=10, world=2)


def test_two_processes_cut_between_states(tmp_path):
    run = small_run()
    assert finish(start(run, tmp_path / "whole", 2)) == [0, 0]
    codes = finish(start(run, tmp_path / "run", 2, prepare=_cut_at_seven))
    assert codes == [1, 1]
    assert [state.name for state in RunFolder(tmp_path / "run").saved_states()] == ["step-000005"]
    assert finish(start(run, tmp_path / "run", 2)) == [0, 0]
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def _cut_at_seven(rank):
    return cut_at(7)


def _terminate_rank_one_at_three(rank):
    return lambda step: os.kill(os.getpid(), signal.SIGTERM) if (rank, step) == (1, 3) else None


def _terminate_at_three(rank):
    return lambda step: os.kill(os.getpid(), signal.SIGTERM) if step == 3 else None


@pytest.mark.parametrize(("world", "prepare"), [(1, _terminate_at_three), (2, _terminate_rank_one_at_three)])
def test_sigterm_saves_then_leaves(straight, tmp_path, world, prepare):
    """With two processes, one alone hears the signal: both stop at the same step."""
    run = small_run()
    codes = finish(start(run, tmp_path / "run", world, prepare))
    assert codes == [1] * world
    assert [state.name for state in RunFolder(tmp_path / "run").saved_states()] == ["step-000004"]
    assert finish(start(run, tmp_path / "run", world)) == [0] * world
    if world == 1:
        assert_same_run(tmp_path / "run", straight)


def interrupted(tmp_path, step: int = 11):
    with pytest.raises(PowerCut):
        train(small_run(), tmp_path / "run", evaluate=False, quiet=True, on_step=cut_at(step))
    return tmp_path / "run"


@pytest.mark.parametrize("harm", ["truncated", "missing", "no checksums", "foreign"])
def test_a_bad_state_is_refused_and_the_one_before_used(straight, tmp_path, harm):
    out = interrupted(tmp_path)
    newest = out / "state" / "step-000010"
    weights_file = newest / "accelerate" / "model.safetensors"
    if harm == "truncated":
        weights_file.write_bytes(weights_file.read_bytes()[:-100])
    elif harm == "missing":
        weights_file.unlink()
    elif harm == "no checksums":
        (newest / "checksums.json").unlink()
    else:
        other = train(small_run(seed=1), tmp_path / "other", evaluate=False, quiet=True)
        shutil.rmtree(newest)
        shutil.copytree(other / "state" / "step-000010", newest)
    with pytest.warns(UserWarning, match="step-000010 is not used"):
        train(small_run(), out, evaluate=False, quiet=True)
    assert_same_run(out, straight)


def test_states_of_other_numbers_of_processes_are_refused(tmp_path):
    out = interrupted(tmp_path)
    assert finish(start(small_run(), out, 2)) == [1, 1]
    assert not (out / "model.safetensors").exists()


def _disk_full_at_ten(rank):
    return lambda step: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)) if step == 9 else None


def _reporting(run, out, messages):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        train(run, out, evaluate=False, quiet=True, on_step=_disk_full_at_ten(0))
    except Stopped as error:
        messages.put(str(error))


def test_full_disk_names_the_last_good_state_and_leaves_it_whole(straight, tmp_path):
    """The limit on a file's size fails the very writes that a full disk fails."""
    messages, out = PROCESSES.SimpleQueue(), tmp_path / "run"
    child = PROCESSES.Process(target=_reporting, args=(small_run(), out, messages))
    child.start()
    assert finish([child]) == [0]
    message = messages.get()
    assert "step 10 can't be saved" in message and "step-000005" in message and "\n" not in message
    assert [folder.name for folder in (out / "state").iterdir()] == ["step-000005"]
    assert fault(out / "state" / "step-000005") is None
    train(small_run(), out, evaluate=False, quiet=True)
    assert_same_run(out, straight)


def test_the_newest_states_are_kept(tmp_path):
    out = train(small_run(train={"save_every": 3, "keep": 3}), tmp_path / "run", evaluate=False, quiet=True)
    assert [state.name for state in RunFolder(out).saved_states()] == ["step-000006", "step-000009", "step-000012"]


def test_going_on_with_other_logging_is_the_same_run(straight, tmp_path):
    """What shapes neither weights nor rows may change between two calls."""
    out = interrupted(tmp_path)
    train(small_run(train={"keep": 1, "save_every": 4}), out, evaluate=False, quiet=True)
    assert_same_run(out, straight)


def test_a_finished_run_is_left_alone(tmp_path):
    out = train(small_run(), tmp_path / "run", quiet=True)
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*") if file.is_file() and file.name != "run.yaml"}
    train(small_run(), out, quiet=True)
    assert before == {file: file.stat().st_mtime_ns for file in before}
    assert [line["step"] for line in curve(out) if "loss" in line] == list(range(1, 13))
