"""Executors: order, failures, signals, jobs elsewhere."""

import multiprocessing
import os
import signal
import threading

import pytest
import yaml

from hf_posgen.common.files import write_rows
from hf_posgen.run.build import build_run
from hf_posgen.sweep.executors.hf_jobs import repo_name, run_on_hf_jobs
from hf_posgen.sweep.executors.local import queue, run_locally
from hf_posgen.sweep.trial import Trial
from hf_posgen.training.trainer import train
from tests.helpers.training_helpers import RUN, assert_same_run, small_run

from .helpers import UNSAVED, wait_for


def test_a_seed_is_finished_before_the_next_begins(tmp_path):
    long = RUN["train"] | {"steps": 10 * RUN["train"]["steps"]}
    mine = [Trial(small_run(seed=seed, train=train), tmp_path) for train in (RUN["train"], long) for seed in (0, 1)]
    taken = [(trial.run.seed, trial.run.train.steps == long["steps"]) for trial in reversed(queue(mine))]
    assert taken == [(0, True), (0, False), (1, True), (1, False)]


def test_a_failing_point_does_not_stop_the_others(tmp_path):
    good, bad = (Trial(small_run(seed=seed), tmp_path) for seed in (0, 1))
    bad.folder.mkdir()
    (bad.folder / "thesis.tex").write_text("not ours")
    (failure,) = run_locally([good, bad], workers=1, quiet=True)
    assert failure.run == bad.name and "is not empty and holds no run" in failure.last_lines
    assert good.done and not bad.done
    assert (bad.folder / "thesis.tex").read_text() == "not ours"


def test_a_worker_that_dies_is_replaced(tmp_path):
    """As by the kernel when memory runs out; the next run gets a new process."""
    mine = [Trial(small_run(seed=seed, train=UNSAVED), tmp_path) for seed in (0, 1)]

    def kill_the_first():
        wait_for(lambda: list(tmp_path.glob("*/train.jsonl")))
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    (failure,) = run_locally(mine, workers=1, quiet=True)
    killer.join()
    assert "killed by signal 9" in failure.last_lines
    assert [trial.done for trial in mine].count(True) == 1


def test_a_signal_saves_every_run_and_each_goes_on(tmp_path):
    mine = [Trial(small_run(seed=seed, train=UNSAVED), tmp_path) for seed in (0, 1)]

    def signal_when_training():
        wait_for(lambda: list(tmp_path.glob("*/train.jsonl")))
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=signal_when_training).start()
    with pytest.raises(KeyboardInterrupt):
        run_locally(mine, workers=1, quiet=True)
    (begun,) = (trial for trial in mine if trial.folder.exists())
    assert list((begun.folder / "state").glob("step-*")) and not begun.done
    straight = train(begun.run, tmp_path / "straight", evaluate=False, quiet=True)
    assert_same_run(train(begun.run, begun.folder, evaluate=False, quiet=True), straight)


def test_slurm_jobs_through_submitit(tmp_path):
    """submitit's own local executor runs the very command that a cluster would."""
    pytest.importorskip("submitit", reason="submitit is in the extra `slurm`")
    from hf_posgen.sweep.executors.slurm import run_on_slurm

    good, bad = (Trial(small_run(seed=seed), tmp_path) for seed in (0, 1))
    bad.write()
    (bad.folder / "state" / "step-000001").mkdir(parents=True)
    (bad.folder / "state" / "step-000001" / "x").write_text("")
    (bad.folder / "train.jsonl").mkdir()  # no file can be written there
    (failure,) = run_on_slurm([good, bad], cluster="local", every=0.5, timeout_min=5, quiet=True)
    assert good.done and failure.run == bad.name and "train.jsonl" in failure.last_lines


class FakeJobs:
    """Hugging Face Jobs that end on the second look; the second one fails."""

    endpoint = "https://hub.invalid"

    def __init__(self, points, download):
        self.started, self.points, self.looks = [], points, {}

    def whoami(self):
        return {"name": "me"}

    def run_job(self, **options):
        self.started.append(options)
        return type("Info", (), {"id": f"job{len(self.started)}"})

    def inspect_job(self, job_id):
        self.looks[job_id] = self.looks.get(job_id, 0) + 1
        stage = "RUNNING" if self.looks[job_id] == 1 else {"job1": "COMPLETED", "job2": "ERROR"}[job_id]
        return type("Info", (), {"status": type("Status", (), {"stage": stage})})

    def fetch_job_logs(self, job_id, tail):
        return ["one", "two", "out of memory"]


def test_hugging_face_jobs(tmp_path, monkeypatch):
    mine = [Trial(small_run(seed=seed), tmp_path) for seed in (0, 1)]

    def download(repo, local_dir, **_):
        assert repo == repo_name("me", mine[0])
        write_rows(local_dir / "results.jsonl", [{"fit": True}])

    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_secret")
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    api = FakeJobs(mine, download)
    (failure,) = run_on_hf_jobs(mine, api=api, every=0.0, quiet=True, flavor="t4-small")
    assert failure.run == mine[1].name and failure.last_lines.endswith("out of memory")
    assert mine[0].done
    for options, trial in zip(api.started, mine, strict=True):
        assert build_run(yaml.safe_load(options["env"]["POSGEN_RUN"])) == trial.run
        assert "hf_secret" not in str(options["command"]) + str(options["env"])
        assert repo_name("me", trial) in options["command"][2] and len(repo_name("me", trial)) <= 99
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(ValueError, match="needs a token"):
        run_on_hf_jobs(mine, api=api)
