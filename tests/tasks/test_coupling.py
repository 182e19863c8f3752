"""Positions given by the task: as drawn, on every path, and what they are for."""

import datasets
import numpy as np
import pytest

from hf_posgen.common.files import read_rows
from hf_posgen.evaluation.measuring import Measurement
from hf_posgen.evaluation.runs import load_run
from hf_posgen.run.build import build_run
from hf_posgen.tasks import Cell, build_task, dataset_card, examples, export_task, load_task
from hf_posgen.training.trainer import train

COUPLED = {"layout": "tight", "positions": "coupled"}


def drawn(name, cell, **parameters):
    task = build_task({"name": name, "positions": "coupled", **parameters})
    assert task.columns == ("input_ids", "labels", "positions")
    return task, *task.sample(np.random.default_rng(0), 5, cell)


def test_a_pasted_token_stands_where_its_source_does():
    task, tokens, labels, positions = drawn("unique_copy", Cell(9, 5), layout="tight")
    assert (positions == [1, 2, 3, 4, 0, 1, 2, 3, 4]).all() and positions.shape == tokens.shape
    _, _, _, positions = drawn("unique_copy", Cell(12, 5), window=12, min_count=2, max_count=4, bos=True)
    assert (positions == [0, 0, 0, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]).all()
    _, _, _, positions = drawn("repeat_copy", Cell(10, 4), layout="tight", times=2)
    assert (positions == [1, 2, 3, 0, 1, 2, 3, 1, 2, 3]).all()
    task, tokens, labels, positions = drawn("stride_copy", Cell(12, 9), layout="tight", stride=3)
    assert (positions[:, 9:] == [1, 4, 7]).all()
    for row, wanted, where in zip(tokens, labels, positions, strict=True):
        for place in np.flatnonzero(wanted != -100):
            sources = np.flatnonzero(where[:8] == where[place])
            assert [row[i] for i in sources] == [wanted[place]], "the one source that stands there"


def test_counted_sequences_are_what_they_were():
    plain = build_task({"name": "repeat_copy", "layout": "tight"})
    coupled = build_task({"name": "repeat_copy", **COUPLED})
    cell = plain.cells("test")[0]
    for mine, other in zip(
        examples(plain, 0, "test", cell, 0, 20), examples(coupled, 0, "test", cell, 0, 20), strict=False
    ):
        assert (mine == other).all()
    assert len(examples(plain, 0, "test", cell, 0, 20)) == 2


def test_builder_export_and_card_carry_the_column(tmp_path):
    config, sizes = "tight_4_12_coupled", {"count": 20, "train_count": 20}
    task = build_task({"name": "repeat_copy", **COUPLED})
    wanted = np.concatenate([examples(task, 0, "test", cell, 19, 20)[2][0] for cell in task.cells("test")])
    folder = export_task("repeat_copy", tmp_path / "hub", configs=[config], **sizes)
    for rows in (
        load_task("repeat_copy", config, split="test", cache_dir=str(tmp_path), **sizes),
        load_task("repeat_copy", config, split="test", streaming=True, cache_dir=str(tmp_path), **sizes),
        datasets.load_dataset(str(folder), config, split="test", cache_dir=str(tmp_path / "cache")),
    ):
        assert list(next(iter(rows)))[:3] == ["input_ids", "labels", "positions"]
        last = [row["positions"] for row in rows if row["index"] == 19]
        assert np.concatenate(last).tolist() == wanted.tolist()
    assert "also `positions`" in (folder / "README.md").read_text()
    assert "also `positions`" in dataset_card("unique_copy") and "also `positions`" not in dataset_card("induction")


def small_run(positions, steps):
    return build_run(
        {
            "task": {"name": "repeat_copy", **COUPLED, "positions": positions, "symbols": 4, "max_count": 8}
            | {"test_counts": [12, 16]},
            "model": {
                "hidden_size": 64,
                "num_hidden_layers": 1,
                "num_attention_heads": 1,
                "norm": "none",
                "mlp": "none",
                "initializer_range": 0.1,
                "embedding_initializer_range": 1.0,
            },
            "train": {"steps": steps, "batch_size": 64, "learning_rate": 0.003, "cpu": True, "trackers": []},
            "evaluation": {"count": 100, "splits": ["test", "both"]},
        }
    )


def test_one_layer_copies_any_length_by_coupled_positions(tmp_path):
    """The next source is one step on, whatever n: one rotary layer learns it at 4 to 8 and keeps it at 12 and 16."""
    out = train(small_run("coupled", 150), tmp_path / "run", quiet=True)
    rows = read_rows(out / "results.jsonl")
    assert rows[0]["fit"] and {row["split"] for row in rows} == {"test", "both"}
    assert all(row["token_accuracy"] > 0.99 for row in rows)
    run, task, model = load_run(out)
    counted = build_task(run.task | {"positions": "counted"})
    without = Measurement(model, counted, 0, 100, 10000).row("test", task.cells("test")[-1])
    assert without["token_accuracy"] < 0.7, "it was the positions, and measuring hands them over"


def test_a_sampler_beside_a_tasks_own_positions_is_refused():
    tree = {"task": {"name": "unique_copy", **COUPLED}, "model": {"position_sampler": "shifted"}}
    with pytest.raises(ValueError, match="position_sampler must be sequential: this task sets the positions"):
        build_run(tree)
    with pytest.raises(ValueError, match="positions is 'given'; allowed: counted, coupled"):
        build_task({"name": "unique_copy", "positions": "given"})


def test_analyses_that_count_positions_say_so(tmp_path):
    from hf_posgen.analysis import analyze

    out = train(small_run("coupled", 2), tmp_path / "run", quiet=True, evaluate=False)
    found = analyze(out, only=["attention_spread"], figures=False)
    assert "says itself where its tokens stand" in found["attention_spread"]["not_applicable"]


def test_models_that_take_no_positions_are_not_asked(tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    from hf_posgen.evaluation.few_shot import FewShot
    from hf_posgen.evaluation.targets import open_target

    task = build_task({"name": "repeat_copy", **COUPLED})
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    LlamaForCausalLM(LlamaConfig(vocab_size=task.vocab_size, **sizes)).save_pretrained(tmp_path / "llama")
    with pytest.raises(ValueError, match="gives its tokens positions of its own, and .* takes none"):
        open_target(str(tmp_path / "llama"), {"name": "repeat_copy", **COUPLED})
    with pytest.raises(ValueError, match="solved examples have no positions"):
        FewShot(task=task)
