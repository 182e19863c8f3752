"""Rows say what was measured: the right answers counted, every cell there or named, nothing half-written."""

import json
import shutil

import numpy as np
import pytest
import torch

from hf_posgen.common.files import read_rows
from hf_posgen.evaluation.measuring import Measurement
from hf_posgen.evaluation.runs import evaluate, save_evaluation
from hf_posgen.evaluation.scoring import predict, predict_freely
from hf_posgen.evaluation.validation import fits, validate
from hf_posgen.run.build import build_model, build_run
from hf_posgen.tasks import Cell, build_task, examples
from hf_posgen.training.trainer import train
from tests.helpers.training_helpers import small_run

FIELDS = """run arm encoding sampler mixer logit_scale task seed split length distance count exact_match exact_match_low
exact_match_high token_accuracy token_accuracy_low token_accuracy_high nll chance ceiling baselines fit bos head_size
parameters tokens_seen train_flops lr train_length train_distance step selected_on dtype revision out_of_range panel kind
shortest_train_length exact_match_chance problem model_digest task_digest data_seed seen_in"""
PASTE = [f"{part}_accuracy{end}" for part in ("first", "rest") for end in ("", "_low", "_high")]
STREAM = {"name": "delay_copy", "window": 48, "test_distances": [9, 12], "test_windows": [64]}


class Oracle(torch.nn.Module):
    """Answers by the task's own rule, wrong where `wrong(row, place)` says so."""

    def __init__(self, task, wrong=lambda row, place: False):
        super().__init__()
        self.task, self.wrong = task, wrong
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen = 0

    def forward(self, input_ids, use_cache, logits_to_keep):
        answers = torch.zeros(*input_ids.shape, self.task.vocab_size)
        for row, tokens in enumerate(input_ids.tolist()):
            for place, answer in self.task.oracle(tokens).items():
                guess = (answer + 1) % 2 if self.wrong(self.seen + row, place) else answer
                answers[row, place - 1, guess] = 9.0
        self.seen += len(input_ids)
        return type("Output", (), {"logits": answers[:, logits_to_keep]})


@pytest.mark.parametrize("spec", [{"name": "fixed_offset"}, {"name": "fixed_offset", "query": "every"}, STREAM])
def test_a_solver_scores_one_everywhere(spec):
    task = build_task(spec)
    wanted = [(split, cells[0]) for split, cells in task.splits().items() if cells and split != "train"]
    wanted = [(split, cell) for split, cell in wanted if cell.length < 200]
    for row in Measurement(Oracle(task), task, seed=0, count=24, batch_tokens=600).rows(wanted):
        assert row["exact_match"] == row["token_accuracy"] == 1.0
        assert row["exact_match_high"] == 1.0 and 0.8 < row["exact_match_low"] < 1.0
        assert row["nll"] < 0.01


def test_wrong_answers_are_counted_and_wilson_is_over_sequences():
    task = build_task({"name": "fixed_offset", "bos": True})
    oracle = Oracle(task, wrong=lambda row, place: row % 4 == 0)
    (row,) = Measurement(oracle, task, seed=0, count=100, batch_tokens=10**6).rows([("test", Cell(8, 3))])
    tokens, labels = examples(task, 0, "test", Cell(8, 3), 0, 100)
    accidental = sum((labels[row].max() + 1) % 2 == labels[row].max() for row in range(0, 100, 4))
    assert row["exact_match"] == pytest.approx((75 + accidental) / 100)
    assert row["exact_match_low"] == pytest.approx(0.657, abs=0.03) and row["exact_match_high"] < 0.88


def test_first_and_rest_of_a_paste_apart():
    task = build_task(STREAM)
    tokens, labels = examples(task, 0, "test", Cell(48, 5), 0, 16)
    first = (labels != -100) & ~np.pad(labels != -100, ((0, 0), (1, 0)))[:, :-1]
    oracle = Oracle(task, wrong=lambda row, place: bool(first[row, place]))
    (row,) = Measurement(oracle, task, seed=0, count=16, batch_tokens=10**6).rows([("test", Cell(48, 5))])
    assert row["rest_accuracy"] == 1.0 and row["first_accuracy"] < 0.2 and row["exact_match"] < 0.2


def one_by_one(model, tokens, labels) -> np.ndarray:
    """The slow twin of `predict_freely`: greedy, a token at a time, from nothing but what stands before it."""
    out = np.full_like(labels, -100)
    for row, (sequence, wanted) in enumerate(zip(tokens, labels, strict=True)):
        read = sequence.copy()
        for place in np.flatnonzero(wanted != -100):
            out[row, place] = model(input_ids=torch.from_numpy(read[None, :place])).logits[0, -1].argmax()
            read[place] = out[row, place]
    return out


@pytest.mark.parametrize("encoding", ["none", "rope", "alibi", "fire"])
@pytest.mark.parametrize("spec", [STREAM, {"name": "unique_copy"}])
def test_free_running_is_greedy_decoding(spec, encoding):
    run = small_run(task=spec, model={"position_encoding": encoding, "embedding_initializer_range": 1.0})
    task, model = run.built_task, build_model(run).double().eval()
    cell = task.cells("test")[-1]
    tokens, labels = (part[:12] for part in examples(task, 0, "test", cell, 0, 12)[:2])
    freely = predict_freely(model, torch.from_numpy(tokens), torch.from_numpy(labels)).numpy()
    np.testing.assert_array_equal(freely, one_by_one(model, tokens, labels))
    forced, _ = predict(model, torch.from_numpy(tokens), torch.from_numpy(labels))
    assert (freely != forced.numpy()).any(), "else nothing was asked"


def test_free_running_agrees_where_it_must():
    """A sequence is right as a whole with its own answers exactly if it is with the right ones; a solver always."""
    task = build_task(STREAM)
    wanted = [("test", Cell(48, 5)), ("farther", Cell(48, 12))]
    for row in Measurement(Oracle(task), task, 0, 16, 10**6, free_running=True).rows(wanted):
        assert row["free_running_accuracy"] == 1.0 and row["free_running_accuracy_low"] < 1.0
    model = build_model(small_run(task=STREAM))
    plain, freely = (Measurement(model, task, 0, 40, 500, free_running=one).rows(wanted) for one in (False, True))
    for one, other in zip(plain, freely, strict=True):
        extra = {key for key in other if key.startswith("free_running")}
        assert len(extra) == 3 and {key: other[key] for key in other if key not in extra} == one


def test_free_running_needs_a_paste(tmp_path):
    folder = train(small_run(train={"steps": 2}), tmp_path / "run", evaluate=False)
    with pytest.raises(ValueError, match="task 'fixed_offset' pastes none"):
        evaluate(folder, free_running=True)


def test_scores_do_not_depend_on_the_batch():
    run = small_run(task=STREAM)
    task, model = run.built_task, build_model(run)
    wanted = [("test", Cell(48, 5)), ("both", Cell(64, 9))]
    rows = [Measurement(model, task, 0, 40, batch_tokens).rows(wanted) for batch_tokens in (1, 333, 10**6)]
    for other in rows[1:]:
        for mine, theirs in zip(rows[0], other, strict=True):
            assert mine.pop("nll") == pytest.approx(theirs.pop("nll"), abs=1e-5)
        assert rows[0] == other
        rows[0] = Measurement(model, task, 0, 40, 333).rows(wanted)


def test_predictions_are_those_of_the_full_forward():
    run = small_run(task=STREAM)
    task, model = run.built_task, build_model(run).eval()
    tokens, labels = map(torch.from_numpy, examples(task, 0, "test", Cell(48, 5), 0, 8))
    predictions, losses = predict(model, tokens, labels)
    outputs = model(tokens, labels=labels)
    scored = labels[:, 1:] != -100
    assert torch.equal(predictions[:, 1:][scored], outputs.logits.argmax(-1)[:, :-1][scored])
    assert float(losses.mean()) == pytest.approx(outputs.loss.item(), abs=1e-5)
    assert (predictions[:, 1:][~scored] == -100).all() and (predictions[:, 0] == -100).all()


@pytest.fixture(scope="module")
def stream_run(tmp_path_factory):
    run = small_run(task=STREAM, arm="my arm", panel="study2", train={"steps": 3})
    return train(run, tmp_path_factory.mktemp("stream") / "run", quiet=True)


def test_rows_have_every_field_for_every_cell(stream_run):
    rows = read_rows(stream_run / "results.jsonl")
    run = build_run({"task": STREAM})
    expected = {(s, c.length, c.distance) for s, cells in run.built_task.splits().items() for c in cells}
    cells = [(row["split"], row["length"], row["distance"]) for row in rows]
    assert len(cells) == len(set(cells)) and set(cells) == {cell for cell in expected if cell[0] != "train"}
    for row in rows:
        assert {*FIELDS.split(), *PASTE} == set(row)
        for name in ("exact_match", "token_accuracy", "first_accuracy", "rest_accuracy"):
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    row = rows[0]
    assert (row["arm"], row["panel"], row["run"], row["step"]) == ("my arm", "study2", "run", 3)
    assert row["train_distance"] == [4, 8] and row["train_length"] == 48 and row["dtype"] == "float32"
    assert row["shortest_train_length"] == 48
    assert row["fit"] is False and row["train_flops"] > 0


def test_chosen_splits_and_count(stream_run):
    rows = evaluate(stream_run, splits=["farther"], count=8)
    assert {row["split"] for row in rows} == {"farther"} and {row["count"] for row in rows} == {8}
    with pytest.raises(ValueError, match="has no split 'sideways'"):
        evaluate(stream_run, splits=["sideways"])


def test_a_cell_past_a_learned_table_is_refused_and_old_rows_stay(tmp_path):
    run = small_run(
        model={"position_encoding": "learned", "position_sampler": "sequential", "max_position_embeddings": 33},
        train={"steps": 2},
    )
    out = train(run, tmp_path / "run", quiet=True)
    before = (out / "results.jsonl").read_text()
    config = json.loads((out / "config.json").read_text())
    shorter = build_model(
        build_run({"model": run.model | {"max_position_embeddings": 20}, "task": run.task} | _no_longer())
    )
    shorter.save_pretrained(out)
    assert config["max_position_embeddings"] == 33
    with pytest.raises(
        ValueError,
        match=r"holds 20 tokens, and longer L32 d3 \(33\) need more: leave them out with",
    ):
        save_evaluation(out)
    assert (out / "results.jsonl").read_text() == before and not list(out.glob(".results*"))


def _no_longer():
    return {"evaluation": {"splits": ["validation", "test"]}}


def test_a_folder_that_is_no_run(tmp_path, stream_run):
    with pytest.raises(ValueError, match="holds no run.yaml"):
        evaluate(tmp_path)
    (tmp_path / "half").mkdir()
    shutil.copy(stream_run / "run.yaml", tmp_path / "half")
    with pytest.raises(ValueError, match="holds no config.json and no model.safetensors"):
        evaluate(tmp_path / "half")


def test_fit_rules():
    offset, stream = build_task("fixed_offset"), build_task("delay_copy")

    def rows(*accuracies):
        return [{"exact_match": a, "token_accuracy": a, "nll": 0.0} for a in accuracies]

    assert fits(offset, rows(1.0, 0.99)) and not fits(offset, rows(1.0, 0.989))
    assert fits(stream, rows(0.91, 0.99)) and not fits(stream, rows(0.94, 0.95))


def test_validation_is_the_rows_means():
    run = small_run()
    task, model = run.built_task, build_model(run)
    summary = validate(model, task, run)
    wanted = [("validation", cell) for cell in task.cells("validation")]
    rows = Measurement(model, task, run.seed, run.train.validation_count, 10**6).rows(wanted)
    for key in ("exact_match", "token_accuracy", "nll"):
        assert summary[key] == pytest.approx(np.mean([row[key] for row in rows]), abs=1e-6)
    assert summary["worst_token_accuracy"] == min(row["token_accuracy"] for row in rows)
    assert model.training
