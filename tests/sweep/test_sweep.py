"""Sweeps: what their files mean, what is skipped and resumed, and what happens when a point fails."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from accelerate import Accelerator

from hf_posgen.common.files import read_rows, write_rows
from hf_posgen.run.build import build_run, run_hash
from hf_posgen.run.folder import RunFolder
from hf_posgen.sweep.executors.hf_jobs import repo_name, run_on_hf_jobs
from hf_posgen.sweep.executors.local import queue, run_locally
from hf_posgen.sweep.run import arms_of, best_run, dry_run, points, presets, read_sweep, sweep
from hf_posgen.sweep.selection import best_rates, selection_points
from hf_posgen.sweep.trial import Point
from hf_posgen.training.launch import TrainingRun, train
from tests.helpers.training_helpers import RUN, assert_same_run, small_run

BASE = {key: RUN[key] for key in ("model", "task", "train", "evaluation")}


UNSAVED = {"steps": 600, "validate_every": 0, "save_every": 0}


def small_sweep(**panel) -> dict:
    arms = {"rope": {"model": {"position_encoding": "rope"}}, "none": {"model": {"position_encoding": "none"}}}
    return {"name": "small", "panels": {"study": {"base": BASE, "arms": arms, "seeds": [0, 1]} | panel}}


def test_points_are_arms_times_seeds_and_named_by_content(tmp_path):
    runs = points(small_sweep())
    assert [(run.arm, run.seed, run.panel) for run in runs] == [
        ("rope", 0, "study"),
        ("rope", 1, "study"),
        ("none", 0, "study"),
        ("none", 1, "study"),
    ]
    names = [Point(run, tmp_path).name for run in runs]
    assert len(set(names)) == 4 and names[0].startswith("study-rope-seed0-")
    longer = points(small_sweep(base=BASE | {"train": BASE["train"] | {"steps": 13}}))
    assert Point(longer[0], tmp_path).name != names[0]


def test_declared_contrasts_are_checked_and_make_no_other_runs():
    declared = small_sweep() | {"contrasts": [["rope", "none"]]}
    assert [run_hash(run) for run in points(declared)] == [run_hash(run) for run in points(small_sweep())]
    for pairs, said in (
        ([["rope", "nnoe"]], "unknown arm 'nnoe' .did you mean 'none'"),
        ([["rope", "rope"]], r"contrast \['rope', 'rope'\] names no two arms"),
        ([["rope", "none"], ["none", "rope"]], "declared twice"),
        (["rope"], "contrast 'rope' names no two arms"),
        (None, "contrast None names no two arms"),
    ):
        with pytest.raises(ValueError, match=said):
            points(small_sweep() | {"contrasts": pairs})
    (part,) = small_sweep()["panels"].values()
    apart = {"panels": {arm: part | {"arms": {arm: part["arms"][arm]}} for arm in ("rope", "none")}}
    with pytest.raises(ValueError, match="contrast rope:none: no panel of the sweep holds both arms"):
        points(apart | {"contrasts": [["rope", "none"]]})


def test_a_grid_names_its_arms():
    tree = small_sweep(
        arms=None,
        grid={
            "model.position_encoding": ["rope", {"name": "alibi", "slopes": "learned"}],
            "model.hidden_size": [16, 32],
        },
    )
    assert list(arms_of(tree["panels"]["study"])) == [
        "rope-hidden_size=16",
        "rope-hidden_size=32",
        "alibi-slopes=learned-hidden_size=16",
        "alibi-slopes=learned-hidden_size=32",
    ]
    assert {run.model["hidden_size"] for run in points(tree)} == {16, 32}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seds": [0]}, "unknown key 'panels.study.seds' .did you mean 'panels.study.seeds'"),
        ({"arms": {}}, "needs at least one arm"),
        ({"seeds": []}, "panels.study.seeds"),
        ({"seeds": 3}, "panels.study.seeds"),
        ({"arms": {"x": {"train": {"stpes": 1}}}}, "unknown key 'train.stpes'"),
        ({"learning_rates": [1e-3]}, "needs both learning_rates and selection_seeds"),
        ({"learning_rates": [1e-3], "selection_seeds": [1]}, "seeds it uses again"),
    ],
)
def test_a_wrong_sweep_is_refused_before_anything_runs(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        sweep(small_sweep(**change), tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_every_preset_is_a_valid_sweep():
    for name in presets():
        assert points(read_sweep(name))


def test_sweep_trains_reports_and_skips_what_is_done(tmp_path):
    out = tmp_path / "out"
    rows, paths, failures = sweep(small_sweep(), out, workers=2, quiet=True)
    assert not failures
    assert {(row["arm"], row["seed"]) for row in rows} == {("rope", 0), ("rope", 1), ("none", 0), ("none", 1)}
    assert read_rows(out / "results.jsonl") == rows
    assert paths.markdown.is_file() and all(figure.is_file() for figure in paths.figures)
    assert best_run(out, [row | {"fit": True} for row in rows]) in {row["run"] for row in rows}
    folders = [path for path in out.iterdir() if (path / "model.safetensors").is_file()]
    assert len(folders) == 4
    before = {path: (path / "model.safetensors").stat().st_mtime_ns for path in folders}
    again, _, _ = sweep(small_sweep(), out, workers=2, quiet=True)
    assert again == rows
    assert before == {path: (path / "model.safetensors").stat().st_mtime_ns for path in folders}


def test_pairs_share_data_and_weights(tmp_path):
    """Arms of a seed read the same sequences in the same order."""
    first = {}
    for run in points(small_sweep()):
        trainer = TrainingRun(run, RunFolder(tmp_path), Accelerator(cpu=True), quiet=True)
        first[run.arm, run.seed] = trainer.batches(0)[0][0].tolist()
    assert first["rope", 0] == first["none", 0] != first["rope", 1]


def test_a_seed_is_finished_before_the_next_begins(tmp_path):
    long = RUN["train"] | {"steps": 10 * RUN["train"]["steps"]}
    mine = [Point(small_run(seed=seed, train=train), tmp_path) for train in (RUN["train"], long) for seed in (0, 1)]
    taken = [(point.run.seed, point.run.train.steps == long["steps"]) for point in reversed(queue(mine))]
    assert taken == [(0, True), (0, False), (1, True), (1, False)]


def test_a_failing_point_does_not_stop_the_others(tmp_path):
    good, bad = (Point(small_run(seed=seed), tmp_path) for seed in (0, 1))
    bad.folder.mkdir()
    (bad.folder / "thesis.tex").write_text("not ours")
    (failure,) = run_locally([good, bad], workers=1, quiet=True)
    assert failure.run == bad.name and "is not empty and holds no run" in failure.last_lines
    assert good.done and not bad.done
    assert (bad.folder / "thesis.tex").read_text() == "not ours"


def test_a_worker_that_dies_is_replaced(tmp_path):
    """As by the kernel when memory runs out; the next run gets a new process."""
    mine = [Point(small_run(seed=seed, train=UNSAVED), tmp_path) for seed in (0, 1)]

    def kill_the_first():
        wait_for(lambda: list(tmp_path.glob("*/train.jsonl")))
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    (failure,) = run_locally(mine, workers=1, quiet=True)
    killer.join()
    assert "killed by signal 9" in failure.last_lines
    assert [point.done for point in mine].count(True) == 1


def sweep_process(tmp_path, out):
    file = tmp_path / "sweep.yaml"
    base = BASE | {"train": BASE["train"] | UNSAVED}
    file.write_text(yaml.safe_dump(small_sweep(base=base, seeds=[0])))
    command = [sys.executable, "-m", "hf_posgen", "sweep", str(file), "--out", str(out), "--workers", "2"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(condition, seconds: float = 120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_signal_saves_every_run_and_each_goes_on(tmp_path):
    mine = [Point(small_run(seed=seed, train=UNSAVED), tmp_path) for seed in (0, 1)]

    def signal_when_training():
        wait_for(lambda: list(tmp_path.glob("*/train.jsonl")))
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=signal_when_training).start()
    with pytest.raises(KeyboardInterrupt):
        run_locally(mine, workers=1, quiet=True)
    (begun,) = (point for point in mine if point.folder.exists())
    assert list((begun.folder / "state").glob("step-*")) and not begun.done
    straight = train(begun.run, tmp_path / "straight", evaluate=False, quiet=True)
    assert_same_run(train(begun.run, begun.folder, evaluate=False, quiet=True), straight)


@pytest.mark.slow
def test_interrupted_and_started_again(tmp_path):
    """A scheduler's SIGTERM, and then Ctrl-C, save every run's state; the same command resumes, and the runs equal straight
    ones."""
    out = tmp_path / "out"
    for interrupt in (lambda pid: os.kill(pid, signal.SIGTERM), lambda pid: os.killpg(pid, signal.SIGINT)):
        before = {path: path.stat().st_mtime_ns for path in out.glob("study-*/train.jsonl")}
        process = sweep_process(tmp_path, out)
        wait_for(lambda: {path: path.stat().st_mtime_ns for path in out.glob("study-*/train.jsonl")} != before)  # noqa: B023
        interrupt(process.pid)
        _, error = process.communicate(timeout=120)
        assert process.returncode == 130 and error.strip().splitlines()[-1].startswith("posgen: interrupted")
        assert "Traceback" not in error
        assert list(out.glob("study-*/state/step-*")) and len(list(out.glob("study-*/model.safetensors"))) < 2
    again = sweep_process(tmp_path, out)
    printed, error = again.communicate(timeout=300)
    assert again.returncode == 0, error
    assert "Report:" in printed and "Figure:" in printed
    for run in points(yaml.safe_load((tmp_path / "sweep.yaml").read_text())):
        straight = train(run, tmp_path / "straight" / run.arm, evaluate=False, quiet=True)
        assert_same_run(Point(run, out).folder, straight)


def test_learning_rates_are_chosen_on_validation(tmp_path):
    tree = small_sweep(learning_rates=["1e-3", 1e-2], selection_seeds=[7, 8], seeds=[0])
    mine = selection_points(tree["panels"], arms_of, tmp_path)
    assert len(mine) == 2 * 2 * 2 and not any(point.evaluate for point in mine)
    for point in mine:
        run = point.run
        good = (run.arm == "rope") == (run.train.learning_rate == 1e-2)
        write_rows(
            point.folder / "train.jsonl",
            [{"split": "validation", "token_accuracy": 0.9 if good else 0.5 + 0.01 * run.seed, "nll": 1.0}],
        )
        (point.folder / "model.safetensors").write_text("")
    rates = best_rates(mine)
    assert rates == {("study", "rope"): 1e-2, ("study", "none"): 1e-3}
    chosen = {run.arm: run.train.learning_rate for run in points(tree, rates)}
    assert chosen == {"rope": 1e-2, "none": 1e-3}


def test_dry_run_prints_launches_that_can_be_run(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump(small_sweep(seeds=[0])))
    total, *commands = dry_run(str(file), tmp_path / "out")
    assert len(commands) == 2 and total.startswith("# 2 runs, one after the other about")
    assert all(command.endswith(" GiB") and "  # about " in command for command in commands)
    assert "at 5e+13 operations per second (given)" in dry_run(str(file), tmp_path / "out", 5e13)[0]
    for command in commands:
        words = command.split()
        assert words[:5] == ["accelerate", "launch", "-m", "hf_posgen", "train"]
        assert build_run(yaml.safe_load(Path(words[5]).read_text()))
    assert not list((tmp_path / "out").rglob("*.safetensors"))


def test_slurm_jobs_through_submitit(tmp_path):
    """submitit's own local executor runs the very command that a cluster would."""
    pytest.importorskip("submitit", reason="submitit is in the extra `slurm`")
    from hf_posgen.sweep.executors.slurm import run_on_slurm

    good, bad = (Point(small_run(seed=seed), tmp_path) for seed in (0, 1))
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
    mine = [Point(small_run(seed=seed), tmp_path) for seed in (0, 1)]

    def download(repo, local_dir, **_):
        assert repo == repo_name("me", mine[0])
        write_rows(local_dir / "results.jsonl", [{"fit": True}])

    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_secret")
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    api = FakeJobs(mine, download)
    (failure,) = run_on_hf_jobs(mine, api=api, every=0.0, quiet=True, flavor="t4-small")
    assert failure.run == mine[1].name and failure.last_lines.endswith("out of memory")
    assert mine[0].done
    for options, point in zip(api.started, mine, strict=True):
        assert build_run(yaml.safe_load(options["env"]["POSGEN_RUN"])) == point.run
        assert "hf_secret" not in str(options["command"]) + str(options["env"])
        assert repo_name("me", point) in options["command"][2] and len(repo_name("me", point)) <= 99
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(ValueError, match="needs a token"):
        run_on_hf_jobs(mine, api=api)
