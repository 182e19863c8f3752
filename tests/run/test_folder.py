"""A run's folder: what it holds, whose it is, and who may write there."""

import json

import pytest

from hf_posgen.evaluation.targets import run_evaluation
from hf_posgen.report.markdown import report
from hf_posgen.run.folder import RunFolder, state_name, step_of
from hf_posgen.run.saved_state import commit
from hf_posgen.sweep.folder import SweepFolder
from hf_posgen.tasks import export_task
from tests.helpers.synthetic_rows import study1
from tests.helpers.training_helpers import small_run


def test_it_is_a_run_once_claimed_and_finished_once_it_has_weights(tmp_path):
    folder, run = RunFolder(tmp_path / "run"), small_run()
    assert not folder.is_run and not folder.is_finished
    with pytest.raises(ValueError, match=r"is no finished run: it holds no run.yaml and no config.json and no model"):
        folder.require_finished()
    folder.claim(run)
    assert folder.is_run and folder.run() == run and not folder.is_finished
    assert folder.rows() == [] and folder.log() == []
    for file in (folder.model_config, folder.weights):
        file.write_text("{}")
    assert folder.is_finished
    folder.require_finished()


def test_another_run_and_other_files_are_refused(tmp_path):
    folder = RunFolder(str(tmp_path / "run"))
    folder.claim(small_run())
    folder.claim(small_run(train={"keep": 5}))
    with pytest.raises(ValueError, match="another configuration .seed is 0 there and 1 here."):
        folder.claim(small_run(seed=1))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and holds no run"):
        RunFolder(tmp_path / "mine").claim(small_run())


def test_states_are_ordered_by_step_and_the_newest_whole_one_of_this_run_is_found(tmp_path):
    folder = RunFolder(tmp_path)
    for step, run in ((5, "a"), (1_000_000, "a"), (999_999, "a"), (2_000_000, "b")):
        beside = tmp_path / "beside"
        beside.mkdir()
        (beside / "progress.json").write_text(json.dumps({"run": run}))
        folder.states.mkdir(exist_ok=True)
        commit(beside, folder.state(step))
    (folder.states / "step-5.partial").mkdir()
    assert [step_of(state) for state in folder.saved_states()] == [5, 999_999, 1_000_000, 2_000_000]
    with pytest.warns(UserWarning, match="step-2000000 is not used: it belongs to another run"):
        assert folder.newest_whole("a") == folder.state(1_000_000)
    (folder.state(2_000_000) / "progress.json").write_text("{}")
    with pytest.warns(UserWarning, match="step-2000000 is not used: progress.json is damaged"):
        assert folder.newest_whole() == folder.state(1_000_000)
    assert state_name(500) == "step-000500" and step_of("best") is None and step_of("000500") is None


def test_two_processes_never_train_in_one_folder(tmp_path):
    folder = RunFolder(tmp_path)
    with (
        folder.locked(),
        pytest.raises(ValueError, match="another process is training in"),
        RunFolder(tmp_path).locked(),
    ):
        pass
    with folder.locked():
        pass


def under_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    return tmp_path / "file" / "out"


WRITERS = {
    "train": lambda out: RunFolder(out).claim(small_run()),
    "sweep": lambda out: SweepFolder(out).claim("name: x"),
    "evaluate": lambda out: run_evaluation("nowhere", out=out),
    "report": lambda out: report(study1(), out),
    "export": lambda out: export_task("fixed_offset", out, count=2, train_count=2),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_under_a_file_is_refused_before_the_work(tmp_path, name):
    out = under_a_file(tmp_path)
    with pytest.raises(ValueError, match=r"can't be a folder: .*file is a file; choose another place") as error:
        WRITERS[name](out)
    assert "Errno" not in str(error.value)
    assert (tmp_path / "file").read_text() == "mine"
