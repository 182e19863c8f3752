"""A cell that can't be measured says why, and takes no other cell's row with it."""

import json
import math

import pytest
import torch

from hf_posgen.evaluation.measuring import Measurement
from hf_posgen.evaluation.runs import evaluate, save_evaluation
from hf_posgen.evaluation.scoring import NotANumber, score_batch
from hf_posgen.evaluation.validation import fits, validate
from hf_posgen.run.build import build_model
from hf_posgen.tasks import build_task
from tests.helpers.training_helpers import small_run

STREAM = {"name": "delay_copy", "window": 48, "test_distances": [9, 12], "test_windows": [64]}
SPECS = [{"name": "fixed_offset", "test_lengths": [17, 32]}, STREAM]


class Broken(torch.nn.Module):
    """A model that answers as another one does, except in sequences of more than `length` tokens."""

    def __init__(self, model, length, change):
        super().__init__()
        self.model, self.length, self.change = model, length, change

    def forward(self, input_ids, **options):
        output = self.model(input_ids=input_ids, **options)
        if input_ids.shape[1] > self.length:
            output.logits = self.change(output.logits)
        return output


def one_nan(logits):
    logits = logits.clone()
    logits[..., 0] = math.nan
    return logits


def raises(error):
    def change(logits):
        raise error

    return change


BROKEN = {
    "a NaN among the logits": (one_nan, "the logits are no numbers at"),
    "nothing but infinity": (lambda logits: torch.full_like(logits, math.inf), "the logits are no numbers at"),
    "every answer ruled out": (lambda logits: torch.full_like(logits, -math.inf), "the logits are no numbers at"),
    "an index past a table": (
        raises(IndexError("index out of range in self")),
        "IndexError: index out of range in self",
    ),
    "no memory": (
        raises(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")),
        "memory doesn't suffice for one sequence",
    ),
    "several lines": (raises(RuntimeError("shapes\ndon't match")), "RuntimeError: shapes don't match"),
}


def cells_of(task):
    cells = [(split, cell) for split, cells in task.splits().items() if split != "train" for cell in cells]
    return sorted(cells, key=lambda pair: pair[1].length)


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize(("spec", "free_running"), [(SPECS[0], False), (STREAM, True)], ids=["offset", "free running"])
def test_the_other_cells_keep_their_rows(spec, free_running, broken):
    task, (change, said) = build_task(spec), BROKEN[broken]
    model = build_model(small_run(task=spec))
    longest = max(cell.length for cell in task.trained_cells()) + task.slots()
    cells = [*cells_of(task)[:2], *cells_of(task)[-2:]]
    whole = Measurement(model, task, 0, 4, 4000, free_running).rows(cells)
    rows = Measurement(Broken(model, longest, change), task, 0, 4, 4000, free_running).rows(cells)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    bad = [row for row in rows if row["length"] + task.slots() > longest]
    assert bad and [row for row in rows if row not in bad] == whole[: -len(bad)], "the longest cells come last"
    for row in bad:
        assert set(row) == set(whole[0]) and row["problem"].startswith(said) and row["count"] == 0
        assert {row[key] for key in row if "accuracy" in key or "match" in key or key == "nll"} == {None}
        assert row["chance"] is not None and "\n" not in row["problem"]


@pytest.mark.parametrize("broken", BROKEN)
def test_where_no_cell_can_be_measured_there_are_no_rows(broken):
    task, (change, said) = build_task(SPECS[0]), BROKEN[broken]
    model = Broken(build_model(small_run(task=SPECS[0])), 0, change)
    with pytest.raises(RuntimeError, match=f"no cell could be measured: {said}"):
        Measurement(model, task, 0, 4, 4000).rows(cells_of(task)[:3])


def test_a_problem_is_said_aloud(finished_run, monkeypatch):
    from hf_posgen.evaluation import measuring

    def fails_at_32(model, batch, *options):
        if batch["input_ids"].shape[1] > 32:
            raise RuntimeError("no kernel image is available")
        return score_batch(model, batch, *options)

    monkeypatch.setattr(measuring, "score_batch", fails_at_32)
    with pytest.warns(
        UserWarning, match=r"1 of 28 cells .* \(longer L32 d3: RuntimeError: no kernel image is available\)"
    ):
        rows = evaluate(finished_run)
    assert [row["length"] for row in rows if row["problem"]] == [32]


def test_training_stops_where_validation_finds_no_numbers(tmp_path, monkeypatch):
    from hf_posgen.evaluation import measuring
    from hf_posgen.training import Stopped, train

    def none(*_):
        raise NotANumber("the logits are no numbers")

    monkeypatch.setattr(measuring, "score_batch", none)
    with pytest.raises(Stopped, match="validation: the logits are no numbers .*, after step 4; "):
        train(small_run(), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_a_cell_that_was_not_measured_is_not_solved():
    task = build_task("fixed_offset")
    solved = {"exact_match": 1.0, "token_accuracy": 1.0, "nll": 0.0}
    assert fits(task, [solved, solved]) and not fits(task, [solved, dict.fromkeys(solved)])


def test_a_symbol_whose_embedding_is_no_number(finished_run, tmp_path):
    """Of the model's own weights: what the tester did. The long cells hold the symbol, few short ones don't."""
    import shutil

    from safetensors.torch import load_file, save_file

    out = shutil.copytree(finished_run, tmp_path / "run")
    weights = load_file(out / "model.safetensors")
    weights["model.embed_tokens.weight"][3] = math.nan
    save_file(weights, out / "model.safetensors", {"format": "pt"})
    (out / "results.jsonl").unlink()
    with pytest.raises(RuntimeError, match="no cell could be measured: the logits are no numbers at"):
        save_evaluation(out)
    assert not (out / "results.jsonl").exists()


def test_validation_stops_at_numbers_that_are_none():
    run = small_run(task=STREAM)
    model = Broken(build_model(run), 0, one_nan)
    with pytest.raises(NotANumber, match=r"validation: the logits are no numbers at .* \(L48 d4\)"):
        validate(model, build_task(run.task), run)


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text("\n\n".join(f"line {i} of a text that nobody has to read" for i in range(300)))
    return {"name": "text", "dataset": str(file), "length": 16, "test_lengths": [16, 32]}


class Uncertain(Broken):
    """Gives the right token next to no probability in long windows."""

    def forward(self, input_ids, logits_to_keep, **options):
        output = self.model(input_ids=input_ids, logits_to_keep=logits_to_keep, **options)
        if input_ids.shape[1] > self.length:
            following = input_ids[:, logits_to_keep + 1]
            output.logits = output.logits.scatter(2, following[..., None], self.change)
        return output


@pytest.mark.parametrize(("logit", "nats"), [(-1000.0, 1000), (-math.inf, None)])
def test_a_perplexity_beyond_what_a_float_holds(text, logit, nats):
    task = build_task(text)
    model = Uncertain(build_model(small_run(task=text)), 16, logit)
    rows = Measurement(model, task, 0, 8, 4000).rows(cells_of(task))
    json.dumps(rows, allow_nan=False)
    *good, bad = rows
    assert bad["length"] == 32 and all(row["perplexity"] > 1 and row["problem"] is None for row in good)
    assert bad["perplexity"] is bad["perplexity_low"] is bad["perplexity_high"] is None and bad["count"] > 0
    assert bad["nll"] == (nats and pytest.approx(nats, rel=0.05))
    assert "infinite: a scored token has next to no" in bad["problem"]


def test_validation_of_such_a_text_goes_on(text):
    run = small_run(task=text)
    summary = validate(Uncertain(build_model(run), 0, -1000.0), build_task(run.task), run)
    assert summary["nll"] > 900 and "perplexity" not in summary
    with pytest.raises(NotANumber, match="no probability at all"):
        validate(Uncertain(build_model(run), 0, -math.inf), build_task(run.task), run)
