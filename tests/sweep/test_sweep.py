"""Sweeps: what is trained, skipped, resumed and reported."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from accelerate import Accelerator

from hf_posgen.cli.outcome import checkpoints
from hf_posgen.common.files import read_rows, write_rows
from hf_posgen.run.build import build_run
from hf_posgen.run.folder import RunFolder
from hf_posgen.sweep.run import dry_run, sweep
from hf_posgen.sweep.selection import best_rates, selection_trials
from hf_posgen.sweep.spec import parse_sweep, sweep_runs
from hf_posgen.sweep.trial import Trial
from hf_posgen.training.trainer import TrainingRun, train
from tests.helpers.training_helpers import assert_same_run

from .helpers import BASE, UNSAVED, small_sweep, wait_for


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


def test_sweep_trains_reports_and_skips_what_is_done(tmp_path):
    out = tmp_path / "out"
    rows, paths, failures = sweep(small_sweep(), out, workers=2, quiet=True)
    assert not failures
    assert {(row["arm"], row["seed"]) for row in rows} == {("rope", 0), ("rope", 1), ("none", 0), ("none", 1)}
    assert read_rows(out / "results.jsonl") == rows
    assert paths.markdown.is_file() and all(figure.is_file() for figure in paths.figures)
    found = checkpoints(out, [row | {"fit": True} for row in rows])
    assert set(found) == {("study", "rope"), ("study", "none")}
    folders = [path for path in out.iterdir() if (path / "model.safetensors").is_file()]
    assert len(folders) == 4
    before = {path: (path / "model.safetensors").stat().st_mtime_ns for path in folders}
    again, _, _ = sweep(small_sweep(), out, workers=2, quiet=True)
    assert again == rows
    assert before == {path: (path / "model.safetensors").stat().st_mtime_ns for path in folders}


def test_pairs_share_data_and_weights(tmp_path):
    """Arms of a seed read the same sequences in the same order."""
    first = {}
    for run in sweep_runs(small_sweep()):
        trainer = TrainingRun(run, RunFolder(tmp_path), Accelerator(cpu=True), quiet=True)
        first[run.arm, run.seed] = trainer.batches(0)[0][0].tolist()
    assert first["rope", 0] == first["none", 0] != first["rope", 1]


def sweep_process(tmp_path, out):
    file = tmp_path / "sweep.yaml"
    base = BASE | {"train": BASE["train"] | UNSAVED}
    file.write_text(yaml.safe_dump(small_sweep(base=base, seeds=[0])))
    command = [sys.executable, "-m", "hf_posgen", "sweep", str(file), "--out", str(out), "--workers", "2"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


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
    for run in sweep_runs(yaml.safe_load((tmp_path / "sweep.yaml").read_text())):
        straight = train(run, tmp_path / "straight" / run.arm, evaluate=False, quiet=True)
        assert_same_run(Trial(run, out).folder, straight)


def test_learning_rates_are_chosen_on_validation(tmp_path):
    tree = small_sweep(learning_rates=["1e-3", 1e-2], selection_seeds=[7, 8], seeds=[0])
    mine = selection_trials(parse_sweep(tree), tmp_path)
    assert len(mine) == 2 * 2 * 2 and not any(trial.evaluate for trial in mine)
    for trial in mine:
        run = trial.run
        good = (run.arm == "rope") == (run.train.learning_rate == 1e-2)
        write_rows(
            trial.folder / "train.jsonl",
            [{"split": "validation", "token_accuracy": 0.9 if good else 0.5 + 0.01 * run.seed, "nll": 1.0}],
        )
        (trial.folder / "model.safetensors").write_text("")
    rates = best_rates(mine)
    assert rates == {("study", "rope"): 1e-2, ("study", "none"): 1e-3}
    chosen = {run.arm: run.train.learning_rate for run in sweep_runs(tree, rates)}
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
