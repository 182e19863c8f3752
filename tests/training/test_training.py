"""The loop computes what it says: loss over scored tokens, rates by step, data by (seed, step, process)."""

import json
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
import yaml
from accelerate import Accelerator

from hf_posgen.common.files import read_rows
from hf_posgen.run.build import TrainConfig, build_model, to_tree
from hf_posgen.run.folder import RunFolder
from hf_posgen.training.trainer import Stopped, TrainingRun, learning_rate, train
from tests.helpers.training_helpers import curve, small_run, weights

PLAIN = {"model": {"hidden_dropout": 0.0, "attention_dropout": 0.0, "position_sampler": "sequential"}}


def trainer_of(tmp_path, **changes) -> TrainingRun:
    run = small_run(**(PLAIN | changes))
    return TrainingRun(run, RunFolder(tmp_path), Accelerator(cpu=True), quiet=True)


def test_micro_batches_count_by_their_scored_tokens(tmp_path):
    """Windows of 1 and 3 scored tokens with losses 1 and 0, 0, 0: the step's loss is .25, not .5."""
    trainer = trainer_of(tmp_path)
    ids = torch.zeros(1, 5, dtype=torch.long)
    trainer.batches = lambda step: [
        (ids, torch.tensor([[-100, -100, -100, -100, 7]])),
        (ids, torch.tensor([[-100, -100, 8, 8, 8]])),
    ]
    weight = next(trainer.model.parameters())

    def forward(labels, num_items_in_batch, **_):
        return SimpleNamespace(loss=(labels == 7).sum() / num_items_in_batch + 0.0 * weight.sum())

    trainer.forward = forward
    assert float(trainer.step()) == 0.25


def test_accumulated_gradient_is_that_of_the_whole(tmp_path):
    """Two micro-batches with different numbers of scored tokens move the weights as one batch of both does."""
    halves, whole = (trainer_of(tmp_path, train={"warmup_steps": 0}) for _ in range(2))
    (one, one_labels), (two, two_labels) = halves.batches(0)
    one_labels[:4] = -100
    halves.batches = lambda step: [(one, one_labels), (two, two_labels)]
    whole.batches = lambda step: [(torch.cat([one, two]), torch.cat([one_labels, two_labels]))]
    assert float(halves.step()) == pytest.approx(float(whole.step()), abs=1e-6)
    for mine, theirs in zip(halves.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=0)


def test_a_step_with_nothing_scored_is_skipped(tmp_path):
    trainer = trainer_of(tmp_path)
    before = [parameter.clone() for parameter in trainer.model.parameters()]
    trainer.batches = lambda step: [(torch.zeros(2, 5, dtype=torch.long), torch.full((2, 5), -100))]
    assert float(trainer.step()) == 0.0
    assert trainer.progress.step == 1
    for parameter, was in zip(trainer.model.parameters(), before, strict=True):
        assert torch.equal(parameter, was)


def test_learning_rate_is_a_function_of_the_step():
    train_config = TrainConfig(steps=100, learning_rate=1.0, warmup_steps=10, schedule="cosine")
    assert [learning_rate(train_config, step) for step in (0, 4, 9, 10)] == pytest.approx([0.1, 0.5, 1.0, 1.0])
    assert learning_rate(train_config, 55) == pytest.approx(0.5)
    assert learning_rate(train_config, 99) == pytest.approx(0.5 * (1 + math.cos(math.pi * 89 / 90)))
    constant = TrainConfig(steps=100, learning_rate=1.0, warmup_steps=10)
    assert learning_rate(constant, 99) == 1.0


def test_the_run_folder(tmp_path):
    out = train(small_run(), tmp_path / "run", quiet=True)
    expected = {"run.yaml", "config.json", "modeling_posgen.py", "model.safetensors", "generation_config.json"}
    expected |= {"tokenizer.json", "tokenizer_config.json", "train.jsonl", "state", "results.jsonl"}
    assert expected <= {file.name for file in out.iterdir()}
    assert not [file for file in out.rglob("*") if "partial" in file.name]
    steps = [line for line in read_rows(out / "train.jsonl") if "loss" in line]
    assert {"step", "loss", "lr", "tokens_seen", "seconds", "tokens_per_second", "peak_memory_bytes"} <= set(steps[0])
    validations = [line for line in read_rows(out / "train.jsonl") if line.get("split") == "validation"]
    assert [line["step"] for line in validations] == [4, 8, 12]
    assert {"exact_match", "token_accuracy", "nll"} <= set(validations[0])
    assert yaml.safe_load((out / "run.yaml").read_text()) == to_tree(small_run())


def test_another_configuration_is_refused(tmp_path):
    out = train(small_run(), tmp_path / "run", evaluate=False, quiet=True)
    with pytest.raises(ValueError, match="train.steps is 12 there and 13 here"):
        train(small_run(train={"steps": 13}), out, quiet=True)


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not overwrite")
    with pytest.raises(ValueError, match="is not empty and holds no run"):
        train(small_run(), tmp_path, quiet=True)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_processes_do_not_train_in_one_folder(tmp_path):
    def again(step):
        with pytest.raises(ValueError, match="another process is training in"):
            train(small_run(), tmp_path / "run", quiet=True)

    train(small_run(), tmp_path / "run", evaluate=False, quiet=True, on_step=again)


def test_arms_of_a_seed_share_the_weights_whose_shapes_agree():
    rope = build_model(small_run()).state_dict()
    learned = build_model(
        small_run(model={"position_encoding": "learned", "position_sampler": "sequential"})
    ).state_dict()
    shared = [name for name in rope if name in learned and rope[name].shape == learned[name].shape]
    assert len(shared) == len(rope)
    for name in shared:
        assert torch.equal(rope[name], learned[name]), name
    other = build_model(small_run(seed=1)).state_dict()
    assert not torch.equal(other["model.embed_tokens.weight"], rope["model.embed_tokens.weight"])


@pytest.mark.parametrize(("rate", "word"), [(1e3, r"the loss is \d"), (1e30, "the loss is (nan|inf)|no number")])
def test_an_exploding_loss_stops_the_run(tmp_path, rate, word):
    run = small_run(train={"learning_rate": rate, "warmup_steps": 0, "clip": 0.0, "save_every": 1, "steps": 40})
    with pytest.raises(Stopped, match=rf"({word}).* at step \d+; the last good state is .*step-\d+"):
        train(run, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_no_number_at_the_first_step_says_that_nothing_was_saved(tmp_path):
    trainer = trainer_of(tmp_path)
    with torch.no_grad():
        next(trainer.model.parameters()).fill_(math.nan)
    with pytest.raises(Stopped, match="the loss is nan at step 1; no state was saved before it"):
        trainer.step()


def scripted_validation(monkeypatch, scores):
    """Validation that says what it is told."""
    told = iter(scores)

    def validate(model, task, run, processes):
        score = next(told)
        return {"exact_match": score, "token_accuracy": score, "worst_token_accuracy": score, "nll": 1.0}

    monkeypatch.setattr("hf_posgen.training.trainer.validate", validate)


def test_early_stop_and_best_weights_by_validation(tmp_path, monkeypatch):
    kept = {}
    save_best = "hf_posgen.training.checkpoints.Checkpoints.save_best"
    from hf_posgen.training.checkpoints import Checkpoints

    original = Checkpoints.save_best

    def noting(self, model):
        kept[self.progress.step] = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        original(self, model)

    monkeypatch.setattr(save_best, noting)
    scripted_validation(monkeypatch, [0.2, 0.6, 0.5, 0.4, 0.9])
    run = small_run(train={"validate_every": 2, "patience": 2, "select": "best"})
    out = train(run, tmp_path / "run", evaluate=False, quiet=True)
    assert [line["step"] for line in curve(out) if "split" in line] == [2, 4, 6, 8]
    assert list(kept) == [2, 4]
    for name, tensor in weights(out).items():
        assert torch.equal(tensor, kept[4][name])


def test_stop_when_good_enough(tmp_path, monkeypatch):
    scripted_validation(monkeypatch, [0.5, 0.97, 1.0])
    out = train(small_run(train={"stop_at": 0.95}), tmp_path / "run", evaluate=False, quiet=True)
    assert curve(out)[-1]["step"] == 8


def test_bf16_trains_and_keeps_float32_weights(tmp_path):
    out = train(small_run(train={"precision": "bf16", "steps": 3}), tmp_path / "run", evaluate=False, quiet=True)
    assert all(tensor.dtype == torch.float32 for tensor in weights(out).values())
    assert all(math.isfinite(line["loss"]) for line in curve(out) if "loss" in line)


@pytest.mark.slow
def test_compiled_training_is_the_same(tmp_path):
    plain = train(small_run(**PLAIN), tmp_path / "plain", evaluate=False, quiet=True)
    run = small_run(**PLAIN, train={"compile": True})
    compiled = train(run, tmp_path / "compiled", evaluate=False, quiet=True)
    for mine, theirs in zip(curve(compiled), curve(plain), strict=True):
        if "loss" in mine:
            assert mine["loss"] == pytest.approx(theirs["loss"], abs=1e-4)


def test_quiet_where_there_is_no_terminal(tmp_path, capfd):
    train(small_run(train={"steps": 3}), tmp_path / "run", evaluate=False)
    printed = capfd.readouterr()
    assert "step" not in printed.err and printed.out == ""


def test_a_tracker_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_posgen.training.log.get_available_trackers", lambda: ["tensorboard"])
    for name, message in (("wandb", "'wandb', which is not installed: pip install wandb"), ("wnadb", "allowed: auto")):
        with pytest.raises(ValueError, match=message):
            train(small_run(train={"trackers": [name]}), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_trackio_without_network(tmp_path, monkeypatch):
    trackio_utils = pytest.importorskip("trackio.utils", reason="trackio is in the extra `tracking`")
    monkeypatch.setattr(trackio_utils, "TRACKIO_DIR", tmp_path / "trackio")
    code = f"""
import yaml
from hf_posgen.run.build import build_run
from hf_posgen.training.trainer import train
train(build_run(yaml.safe_load(open({str(tmp_path / "run.yaml")!r}))), {str(tmp_path / "run")!r}, evaluate=False)
"""
    run = small_run(train={"trackers": ["auto"], "steps": 3})
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(to_tree(run)))
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert list((tmp_path / "trackio").glob("*.db"))


def test_uploads_get_every_state_and_the_run(tmp_path):
    calls = []

    class Uploads:
        def checkpoint(self, folder, revision):
            assert (folder / "model.safetensors").is_file()
            calls.append(revision)

        def run(self, folder):
            assert (folder / "results.jsonl").is_file()
            calls.append(folder.name)

        def __enter__(self):
            calls.append("begun")
            return self

        def __exit__(self, *_):
            calls.append("waited")

    train(small_run(), tmp_path / "run", quiet=True, uploads=Uploads)
    assert calls == ["begun", "step-000005", "step-000010", "step-000012", "run", "waited"]


def test_launched_on_two_processes(tmp_path):
    """`accelerate launch` on two CPU processes: there are two, and they do what one does with twice the micro-batches."""
    one = train(small_run(**PLAIN), tmp_path / "one", evaluate=False, quiet=True)
    tree = to_tree(small_run(**PLAIN, train={"gradient_accumulation": 1}))
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(tree))
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    launch += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    command = [*launch, "-m", "hf_posgen", "train", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "two")]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    progress = json.loads((tmp_path / "two" / "state" / "step-000012" / "progress.json").read_text())
    assert progress["processes"] == 2
    assert len(list((tmp_path / "two" / "state" / "step-000012" / "accelerate").glob("random_states_*"))) == 2
    for mine, theirs in zip(curve(tmp_path / "two"), curve(one), strict=True):
        assert mine.pop("split", "") == theirs.pop("split", "")
        assert mine == pytest.approx(theirs, abs=1e-6, rel=1e-6)
    theirs = weights(one)
    for name, tensor in weights(tmp_path / "two").items():
        torch.testing.assert_close(tensor, theirs[name], atol=1e-6, rtol=0)
    assert read_rows(tmp_path / "two" / "results.jsonl")


def test_processes_see_disjoint_data_and_equal_weights(tmp_path):
    """What rank 0 and rank 1 of two read in a step is what one process reads in its two micro-batches."""
    alone = trainer_of(tmp_path)
    (first, _), (second, _) = alone.batches(5)
    for rank, expected in ((0, first), (1, second)):
        member = trainer_of(tmp_path, train={"gradient_accumulation": 1})
        member.accelerator = SimpleNamespace(num_processes=2, process_index=rank)
        assert torch.equal(member.batches(5)[0][0], expected)
    assert not torch.equal(first, second)
