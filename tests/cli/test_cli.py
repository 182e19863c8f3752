"""What is typed: one sentence per error, exit code 2 for usage and 1 for failure, no traceback, nothing half-written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hf_posgen.cli.dispatch import COMMANDS, LISTS, main
from hf_posgen.cli.lists import REGISTRIES, describe, registry_of
from hf_posgen.common.files import read_rows
from hf_posgen.model.component import hyperparameters
from hf_posgen.tasks.registry import TASKS, task_parameters
from tests.helpers.training_helpers import RUN


@pytest.fixture
def run_file(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(
        yaml.safe_dump(
            RUN | {"train": RUN["train"] | {"steps": 4}, "model": RUN["model"] | {"position_encoding": "alibi"}}
        )
    )
    return file


def type_in(*arguments) -> int:
    """The exit code."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as leaving:
        return leaving.code or 0
    return 0


def refused(capsys, code: int, *arguments) -> str:
    """The sentence on stderr."""
    assert type_in(*arguments) == code
    printed = capsys.readouterr()
    (line,) = printed.err.strip().splitlines()
    assert line.startswith("posgen: ") and printed.out == ""
    return line


def test_help_imports_nothing_heavy():
    """It answers in a fraction of a second because of what it doesn't import."""
    code = """
import sys
sys.argv = ["posgen"]
from hf_posgen.cli.dispatch import COMMANDS, main
for arguments in [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]:
    try:
        main(arguments)
    except SystemExit as leaving:
        assert not leaving.code
heavy = {"torch", "transformers", "datasets", "scipy", "pandas", "matplotlib", "accelerate"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "null" not in done.stdout and "<function" not in done.stdout
    for key in ("--train.learning_rate", "--model.position_encoding", "--evaluation.count", "optimizer steps"):
        assert key in done.stdout


def test_options_change_the_file_wherever_they_stand(run_file, tmp_path, capsys):
    """A file is read before the options, and a spec's option keeps its name."""
    out = tmp_path / "out"
    options = ["--train.steps", "3", "--model.position_encoding.slopes=learned", "--seed", "5", "--task.offset", "2"]
    assert type_in("train", *options, run_file, "--out", out, "--evaluation.splits", "test,longer") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"Run folder: {out} (alibi on fixed_offset, 3 steps)"
    assert any("exact match by length (trained: " in line for line in said), "what it scored"
    run = yaml.safe_load((out / "run.yaml").read_text())
    assert run["train"]["steps"] == 3 and run["seed"] == 5 and run["task"]["offset"] == 2
    assert run["model"]["position_encoding"] == {"name": "alibi", "slopes": "learned"}
    assert run["evaluation"]["splits"] == ["test", "longer"] and run["model"]["hidden_size"] == 16
    assert {row["split"] for row in read_rows(out / "results.jsonl")} == {"test", "longer"}


def test_config_as_an_option_and_a_run_without_a_file(run_file, tmp_path):
    assert type_in("train", "--out", tmp_path / "a", "--config", run_file, "--no-evaluate") == 0
    assert not (tmp_path / "a" / "results.jsonl").exists()
    tiny = ["--train.steps", "1", "--train.cpu", "true", "--train.trackers", "[]", "--model.hidden_size", "16"]
    tiny += ["--task.test_lengths", "[17]", "--evaluation.count", "4", "--model.position_encoding.base", "500"]
    assert type_in("train", "--out", tmp_path / "b", *tiny) == 0
    run = yaml.safe_load((tmp_path / "b" / "run.yaml").read_text())
    assert run["model"]["position_encoding"]["base"] == 500 and run["task"]["test_lengths"] == [17]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "unknown command 'trian' (did you mean 'train'?)"),
        (["train"], "posgen train needs --out"),
        (["push", "RUN"], "posgen push needs --repo-id"),
        (["evaluate"], "posgen evaluate needs model"),
        (["train", "--out", "OUT", "--train.stpes", "5"], "unknown option --train.stpes; did you mean --train.steps?"),
        (["train", "--out", "OUT", "--train.steps", "many"], "--train.steps is 'many'; it must be a whole number"),
        (["train", "--out", "OUT", "--train.steps"], "--train.steps"),
        (["train", "--out", "OUT", "--task"], "--task needs a value"),
        (["train", "--out", "OUT", "--train.steps", "0"], "train.steps is 0; it must be at least 1"),
        (["train", "--out", "OUT", "--model.position_encoding", "rpe"], "did you mean 'rope'"),
        (["train", "--out", "OUT", "--model.position_encodng", "rope"], "did you mean --model.position_encoding?"),
        (["train", "--out", "OUT", "--model.hidden_size", "65"], "not divisible"),
        (["train", "--out", "OUT", "--task", "fixd_offset"], "did you mean 'fixed_offset'"),
        (["train", "--out", "OUT", "--task.test_lengths", "[8]"], "training sees"),
        (["train", "nowhere.yaml", "--out", "OUT"], "no such file: nowhere.yaml"),
        (["train", "one.yaml", "two.yaml", "--out", "OUT"], "'two.yaml' is one argument too many"),
        (["evaluate", "./nowhere"], "./nowhere is neither a folder nor the name of a model on the Hub"),
        (["sweep", "quikstart", "--out", "OUT"], "unknown preset 'quikstart' (did you mean 'quickstart'?)"),
        (["sweep", "quickstart", "--out", "OUT", "--executor", "slrm"], "did you mean 'slurm'"),
        (["sweep", "quickstart", "--out", "OUT", "--executor", "slrm", "--dry-run"], "did you mean 'slurm'"),
        (["sweep", "one.yaml", "--out", "OUT"], "one.yaml is one run, and a sweep has panels of many: posgen train"),
        (["sweep", "quickstart", "--out", "OUT", "--workers", "0"], "workers is 0"),
        (["report", "nowhere", "-o", "OUT"], "no such folder: nowhere"),
        (["push", "nowhere", "--repo-id", "me/x"], "nowhere is no finished run"),
        (["data", "expert"], "unknown action of posgen data 'expert' (did you mean 'export'?)"),
        (["data", "export", "fixd_offset", "OUT"], "did you mean 'fixed_offset'"),
        (["list", "encodngs"], "did you mean 'encodings'"),
    ],
)
def test_wrong_usage(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").write_text("task: fixed_offset\n")
    assert message in refused(capsys, 2, *arguments)
    assert not list(tmp_path.glob("OUT/*")) or arguments[-1] == "0"


@pytest.mark.parametrize("text", ["[1, 2]", "a: [1", "train: {stpes: 3}", "model: 3", "task: {offset: 1}"])
def test_files_that_are_no_runs(text, tmp_path, capsys):
    (tmp_path / "run.yaml").write_text(text)
    refused(capsys, 2, "train", tmp_path / "run.yaml", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_run_in_the_folder(run_file, tmp_path, capsys):
    assert type_in("train", run_file, "--out", tmp_path / "out", "--no-evaluate") == 0
    capsys.readouterr()
    message = refused(capsys, 2, "train", run_file, "--out", tmp_path / "out", "--train.learning_rate", "0.5")
    assert "train.learning_rate is 0.001 there and 0.5 here" in message


def test_a_failure_is_no_usage_error(run_file, tmp_path, capsys):
    options = ["--train.learning_rate", "1e30", "--train.warmup_steps", "0", "--train.save_every", "1"]
    message = refused(capsys, 1, "train", run_file, "--out", tmp_path / "out", *options)
    assert "the last good state is" in message
    refused(capsys, 1, "train", run_file, "--out", tmp_path / "out", *options)


def test_a_failed_point_of_a_sweep(tmp_path, capsys):
    arms = {"good": {}, "wild": {"train": {"learning_rate": 1e30}}}
    base = RUN | {"train": RUN["train"] | {"warmup_steps": 0}}
    sweep = {"name": "x", "panels": {"p": {"base": base, "arms": arms, "seeds": [0]}}}
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    assert type_in("sweep", tmp_path / "sweep.yaml", "--out", tmp_path / "out", "--workers", "1") == 1
    printed = capsys.readouterr()
    assert "Failed: p-wild-seed0" in printed.out and "Stopped: the loss is" in printed.out
    assert printed.err.strip().splitlines()[-1] == "posgen: 1 run of the sweep failed"
    assert "Report:" in printed.out


def test_evaluate_and_report_and_push_plan(finished_run, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(finished_run, run)
    assert type_in("evaluate", run, "--count", "8", "--splits", "test", "longer") == 0
    counts = {(row["split"], row["count"]) for row in read_rows(run / "results.jsonl")}
    assert {("test", 8), ("longer", 8)} < counts and 8 not in {n for split, n in counts if split == "validation"}
    assert type_in("report", run, "-o", tmp_path / "report") == 0
    assert (tmp_path / "report" / "report.md").is_file()
    assert type_in("push", run, "--repo-id", "me/x", "--dry-run") == 0
    assert "me/x" in capsys.readouterr().out


@pytest.mark.parametrize("what", LISTS)
def test_lists(what, capsys):
    assert type_in("list", what) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 2 + len(LISTS[what]()) and all(line.startswith("|") for line in lines)


def test_data_export(tmp_path, capsys):
    options = ["--configs", "last_k1", "--count", "4", "--train-count", "4"]
    assert type_in("data", "export", "fixed_offset", tmp_path / "data", *options) == 0
    assert (tmp_path / "data" / "README.md").is_file()
    capsys.readouterr()
    refused(capsys, 2, "data", "push", tmp_path, "--repo-id", "me/x")


def test_analyze_and_convert_get_what_was_typed(monkeypatch, capsys, tmp_path):
    calls = []
    (tmp_path / "run.yaml").write_text("")
    monkeypatch.setattr("hf_posgen.analysis.analyze", lambda folder, **options: calls.append((folder, options)) or {})
    monkeypatch.setattr("hf_posgen.convert.convert", lambda source, out, to: calls.append((source, out, to)))
    assert type_in("analyze", str(tmp_path), "--only", "pinning,dilution", "probes") == 0
    assert calls.pop() == (tmp_path, {"only": ["pinning", "dilution", "probes"], "imports": []})
    assert type_in("convert", "gpt2", "OUT", "--to", "llama") == 0
    assert calls == [("gpt2", "OUT", "llama")]


def test_the_module_and_the_scripts_are_the_same(run_file, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "hf_posgen", "--help"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0 and all(name in done.stdout for name in COMMANDS)
    script = [sys.executable, os.path.join(root, "scripts", "train.py"), str(run_file), "--out", str(tmp_path / "out")]
    done = subprocess.run(script, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    measure = [sys.executable, os.path.join(root, "scripts", "evaluate_extrapolation.py"), str(tmp_path / "out")]
    done = subprocess.run(measure, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "length" in done.stdout, done.stderr


@pytest.mark.parametrize("command", ["train", "evaluate", "sweep", "report", "push", "data export", "data push"])
def test_options_take_dashes_and_underscores(command):
    """Every option of every command, however its help writes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hf_posgen.cli.parser.Parser.parse_args", lambda self, *_: (_ for _ in ()).throw(Caught(self)))
        caught = pytest.raises(Caught, main, command.split()).value
    parser = caught.args[0]
    options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    assert options
    for option in options:
        for written in {f"--{option[2:].replace('_', '-')}", f"--{option[2:].replace('-', '_')}"}:
            assert parser.as_known(f"{written}=a-b_c") == f"{option}=a-b_c", "the option alone, not its value"
            assert parser.as_known(written) == option


class Caught(BaseException):
    """Carries a parser out of a command, past what reports errors."""


def test_keys_of_specs_take_dashes_and_underscores(tmp_path):
    options = ["--train.learning-rate", "0.002", "--task.test-lengths=[17]", "--model.position-encoding", "alibi"]
    tiny = ["--train.steps", "1", "--train.cpu", "true", "--model.hidden-size", "16", "--no_evaluate"]
    assert type_in("train", "--out", tmp_path / "run", *options, *tiny) == 0
    run = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    assert run["train"]["learning_rate"] == 0.002 and run["task"]["test_lengths"] == [17]
    assert run["model"]["position_encoding"]["name"] == "alibi" and run["model"]["hidden_size"] == 16


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--train.lr", "--train.learning_rate"),
        ("--lr", "--train.learning_rate"),
        ("--bs", "--train.batch_size"),
        ("--epochs", "--train.steps"),
        ("--train.max_grad_norm", "--train.clip"),
        ("--d-model", "--model.hidden_size"),
        ("--model.n_layers", "--model.num_hidden_layers"),
        ("--learning-rate", "--train.learning_rate"),
        ("--stpes", "--train.steps"),
        ("--evaluation.cuont", "--evaluation.count"),
        ("--output-dir", "--out"),
    ],
)
def test_a_wrong_option_suggests_the_right_one(given, meant, tmp_path, capsys):
    line = refused(capsys, 2, "train", "--out", tmp_path / "out", given, "1")
    assert line.endswith(f"unknown option {given}; did you mean {meant}?")


def test_a_wrong_key_of_a_file_suggests_the_right_one(tmp_path, capsys):
    (tmp_path / "run.yaml").write_text("train: {lr: 1e-3}\n")
    line = refused(capsys, 2, "train", tmp_path / "run.yaml", "--out", tmp_path / "out")
    assert "unknown key 'train.lr' (did you mean 'train.learning_rate'?)" in line


def test_what_nothing_resembles_suggests_nothing(tmp_path, capsys):
    line = refused(capsys, 2, "train", "--out", tmp_path / "out", "--zzz", "1")
    assert "did you mean" not in line


@pytest.mark.parametrize("what", [*REGISTRIES, "tasks"])
def test_a_list_describes_each_of_its_entries(what, capsys):
    """Every parameter of every task and component: its name, type, default, and for tasks what it means."""
    entries = TASKS if what == "tasks" else registry_of(what)
    for name in entries:
        assert type_in("list", what, name) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"{name}: ")
        if what == "tasks":
            parameters = task_parameters(name)
            assert parameters and all(parameter.meaning and parameter.type for parameter in parameters)
            assert all(f"| {parameter.name} " in shown and parameter.meaning in shown for parameter in parameters)
        else:
            assert all(f"| {parameter} " in shown for parameter in hyperparameters(entries[name]))
    message = refused(capsys, 2, "list", what, "nope")
    assert "unknown" in message and next(iter(entries)) in message


def test_a_preset_has_no_parameters():
    with pytest.raises(ValueError, match="posgen list presets takes no name"):
        describe("presets", "quickstart")
