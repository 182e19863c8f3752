"""What is evaluated is known by its content: under one name there may be another model, and no row mixes the two."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from hf_posgen.common.files import read_rows, write_rows
from hf_posgen.evaluation.any_model import open_model
from hf_posgen.evaluation.cells import task_facts
from hf_posgen.evaluation.few_shot import FewShot
from hf_posgen.evaluation.runs import open_run, save_evaluation
from hf_posgen.evaluation.targets import run_evaluation
from hf_posgen.report.markdown import report
from hf_posgen.reproduce.steps import evaluate_again
from hf_posgen.tasks import build_task
from hf_posgen.training import train
from tests.helpers import tiny_models as tiny
from tests.helpers.training_helpers import small_run

SHORT = {"name": "fixed_offset", "test_lengths": [17, 32]}


def change_weights(folder):
    weights = load_file(folder / "model.safetensors")
    name = sorted(name for name in weights if weights[name].ndim == 2)[0]
    weights[name][0] += 1
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def change_config(folder):
    config = json.loads((folder / "config.json").read_text())
    config["norm_eps" if config["model_type"] == "posgen" else "rms_norm_eps"] = 0.1
    (folder / "config.json").write_text(json.dumps(config))


def change_tokenizer(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["Ġa"], vocabulary["Ġb"] = vocabulary["Ġb"], vocabulary["Ġa"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def change_all(folder):
    shutil.rmtree(folder)
    tiny.saved(tiny.llama(299, hidden_size=16), folder, tiny.byte_level_bpe())


@pytest.fixture
def llama(tmp_path):
    tokenizer = tiny.byte_level_bpe()
    return tiny.saved(tiny.llama(len(tokenizer)), tmp_path / "m", tokenizer)


@pytest.mark.parametrize("change", [change_weights, change_config, change_tokenizer, change_all])
def test_rows_of_another_model_under_the_same_path_are_refused(llama, tmp_path, change):
    options = {"task": SHORT, "count": 4, "out": tmp_path / "out"}
    run_evaluation(str(llama), lengths=[4], **options)
    run_evaluation(str(llama), lengths=[17], **options)
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    assert {row["length"] for row in rows} == {4, 17} and len({row["model_digest"] for row in rows}) == 1
    change(llama)
    with pytest.raises(ValueError, match="out holds rows of another evaluation"):
        run_evaluation(str(llama), lengths=[32], **options)
    assert read_rows(tmp_path / "out" / "results.jsonl") == rows
    (tmp_path / "out" / "evaluation.json").unlink()  # the rows know it as well
    with pytest.raises(ValueError, match="another evaluation"):
        run_evaluation(str(llama), lengths=[32], **options)


@pytest.mark.parametrize("change", [change_weights, change_config])
def test_a_runs_own_rows_are_of_its_weights(finished_run, tmp_path, change):
    run = shutil.copytree(finished_run, tmp_path / "run")
    before = read_rows(run / "results.jsonl")
    change(run)
    for evaluate in (save_evaluation, lambda folder, **options: run_evaluation(str(folder), **options)):
        with pytest.raises(ValueError, match="the model's weights, configuration or code differ"):
            evaluate(run, splits=["longer"], count=4)
    assert read_rows(run / "results.jsonl") == before
    save_evaluation(run)  # all cells anew: nothing is mixed
    (digest,) = {row["model_digest"] for row in read_rows(run / "results.jsonl")}
    assert digest != before[0]["model_digest"]


def test_rows_that_do_not_say_whose_they_are_are_not_added_to(finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    old = [
        {key: value for key, value in row.items() if key != "model_digest"} for row in read_rows(run / "results.jsonl")
    ]
    write_rows(run / "results.jsonl", old)
    with pytest.raises(ValueError, match=r"configuration or code differ \(not recorded, and "):
        save_evaluation(run, splits=["longer"], count=4)


def test_rows_that_a_reproduction_kept_are_of_the_same_evaluation(finished_run, tmp_path):
    run, kept = shutil.copytree(finished_run, tmp_path / "run"), {"splits": ["longer"], "count": 4}
    first = evaluate_again(run, "more", {"test_lengths": [24]}, **kept)
    time = (run / "more.jsonl").stat().st_mtime_ns
    assert evaluate_again(run, "more", {"test_lengths": [24]}, **kept) == first
    assert (run / "more.jsonl").stat().st_mtime_ns == time, "kept"
    assert evaluate_again(run, "more", {"test_lengths": [24]}, **kept | {"count": 5})[0]["count"] == 5
    assert evaluate_again(run, "more", {"test_lengths": [24]}, fresh=3, **kept)[0]["data_seed"] == 3
    change_weights(run)
    assert evaluate_again(run, "more", {"test_lengths": [24]}, **kept)[0]["model_digest"] != first[0]["model_digest"]


def test_weights_trained_anew_begin_without_rows(tmp_path):
    out = train(small_run(train={"steps": 2}), tmp_path / "run", quiet=True)
    assert (out / "results.jsonl").is_file()
    (out / "model.safetensors").unlink()
    shutil.rmtree(out / "state")
    train(small_run(train={"steps": 2}), out, quiet=True, evaluate=False)
    assert not (out / "results.jsonl").exists(), "they would pass for those of the new weights"


@torch.no_grad()
def test_a_digest_is_of_the_content_and_not_of_the_files(llama, tmp_path):
    digest = open_model(str(llama)).digest
    model = tiny.llama(299)
    model.save_pretrained(tmp_path / "sharded", max_shard_size="20KB")
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 1
    assert (
        open_model(str(tmp_path / "sharded")).digest
        == digest
        == open_model(str(shutil.copytree(llama, tmp_path / "n"))).digest
    )
    assert open_model(str(tiny.saved(model.bfloat16(), tmp_path / "half"))).digest != digest


def test_code_that_comes_with_a_model_is_part_of_it(tmp_path, monkeypatch):
    tiny.module_cache(monkeypatch, tmp_path / "modules")
    digests = []
    for number in range(2):
        folder = tmp_path / f"m{number}"
        tiny.saved(tiny.llama(20), folder)
        config = json.loads((folder / "config.json").read_text())
        tiny.with_code_of_its_own(folder)
        own = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | own | {"vocab_size": 20}))
        with (folder / "modeling_mine.py").open("a") as file:
            file.write(f"\nNUMBER = {number}\n")
        digests.append(open_model(str(folder), trust_remote_code=True).digest)
    assert digests[0] != digests[1]


def test_what_a_run_imports_is_part_of_it(finished_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = shutil.copytree(finished_run, tmp_path / "run")
    plain = open_run(run).facts["model_digest"]
    (tmp_path / "an_encoding_of_mine.py").write_text("VERSION = 1\n")
    (run / "run.yaml").write_text(
        (run / "run.yaml").read_text().replace("imports: {}", "imports: [an_encoding_of_mine]")
    )
    assert open_run(run).facts["model_digest"] != plain


def test_a_task_is_known_by_its_parameters():
    digest = {
        name: task_facts(task)["task_digest"]
        for name, task in {
            "plain": build_task("fixed_offset"),
            "again": build_task({"name": "fixed_offset", "symbols": 16}),
            "symbols": build_task({"name": "fixed_offset", "symbols": 64}),
            "offset": build_task({"name": "fixed_offset", "offset": 2}),
            "shown": FewShot(task=build_task("fixed_offset"), shots=2),
            "shown more": FewShot(task=build_task("fixed_offset"), shots=3),
        }.items()
    }
    assert digest.pop("again") == digest["plain"] and len(set(digest.values())) == len(digest)


def test_a_report_knows_models_by_their_weights_too(tmp_path):
    """Where nothing fits, two draws of data are one seed; the same weights aren't two; two models aren't one."""
    tokenizer = tiny.byte_level_bpe()
    first = tiny.saved(tiny.llama(len(tokenizer)), tmp_path / "a" / "m", tokenizer)
    second = tiny.saved(tiny.llama(len(tokenizer), hidden_size=16), tmp_path / "b" / "m", tokenizer)
    options = {"task": SHORT, "count": 4, "splits": ["test", "longer"]}
    rows, *_ = run_evaluation(str(first), **options)
    again, *_ = run_evaluation(str(first), data_seed=1, **options)
    assert "0 of 1" in report(rows + again, tmp_path / "draws").markdown.read_text()
    as_seed, *_ = run_evaluation(str(first), training_seed=1, **options)
    with pytest.raises(
        ValueError, match=r"'m' has the same weights \(.*\) under the seeds 0, 1: draws of data are no seeds"
    ):
        report(rows + as_seed, tmp_path / "seeds")
    other, *_ = run_evaluation(str(second), **options)
    with pytest.raises(
        ValueError, match="arm 'm' has two runs of seed 0: run m, model_digest .*; and run m, model_digest"
    ):
        report(rows + other, tmp_path / "names")
    as_seed, *_ = run_evaluation(str(second), training_seed=1, **options)
    assert "0 of 2" in report(rows + as_seed, tmp_path / "two").markdown.read_text()
