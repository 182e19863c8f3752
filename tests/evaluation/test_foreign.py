"""A task asked of any causal language model: what is typed, what comes out, what is refused beforehand."""

import json
import shutil
from operator import itemgetter
from pathlib import Path

import pytest
import torch

from hf_posgen.cli.dispatch import main
from hf_posgen.common.files import read_rows
from hf_posgen.evaluation.any_model import Translated
from hf_posgen.evaluation.measuring import Measurement
from hf_posgen.evaluation.scoring import predict_freely
from hf_posgen.evaluation.targets import open_target, run_evaluation
from hf_posgen.hub.publish import push
from hf_posgen.report.markdown import report
from hf_posgen.tasks import Cell, build_task, examples, train_cell
from tests.helpers import tiny_models as tiny
from tests.helpers.hub_helpers import python
from tests.helpers.standin_hub import WRITE, hub_fixture  # noqa: F401
from tests.helpers.training_helpers import small_run

SHORT = {"name": "fixed_offset", "test_lengths": [17, 32]}
SMALL = {"name": "fixed_offset", "min_length": 4, "max_length": 6, "test_lengths": [8, 12]}
TYPED = ["--task", "fixed_offset", "--task.test_lengths", "[17,32]", "--count", "4"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder, tokenizer = tmp_path_factory.mktemp("models"), tiny.byte_level_bpe()
    for make in (tiny.gpt2, tiny.llama):
        tiny.saved(make(len(tokenizer)), folder / make.__name__, tokenizer)
    tiny.saved(tiny.llama(18), folder / "bare")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A Llama of transformers that transformers' own Trainer trained on fixed_offset: nothing in it is ours."""
    from torch.utils.data import Dataset
    from transformers import Trainer, TrainingArguments

    class Batches(Dataset):
        def __len__(self):
            return 300

        def __getitem__(self, step):
            tokens, labels = examples(task, 0, "train", train_cell(task, 0, step), step * 64, (step + 1) * 64)
            return {"input_ids": torch.from_numpy(tokens), "labels": torch.from_numpy(labels)}

    folder, task = tmp_path_factory.mktemp("trained") / "my-llama", build_task(SHORT)
    model = tiny.llama(task.vocab_size, positions=40, hidden_size=64, num_hidden_layers=2, initializer_range=0.1)
    options = {
        "per_device_train_batch_size": 1,
        "learning_rate": 2e-3,
        "lr_scheduler_type": "constant",
        "max_steps": 300,
        "report_to": [],
    }
    options |= {"use_cpu": True, "save_strategy": "no", "disable_tqdm": True, "logging_strategy": "no"}
    trainer = Trainer(model, TrainingArguments(folder, **options), lambda batches: batches[0], Batches())
    trainer.train()
    return tiny.saved(trainer.model, folder, task.build_tokenizer())


def test_a_llama_trained_elsewhere_is_right_in_distribution_and_beyond(trained, tmp_path):
    rows, said, where = run_evaluation(str(trained), task=SHORT, count=200, out=tmp_path / "out")
    assert said.splitlines()[0] == f"{trained}: rope, {rows[0]['parameters']:,} parameters, float32, made for 40 tokens"
    assert where == tmp_path / "out" / "results.jsonl" and read_rows(where) == rows
    by_length = {row["length"]: row["exact_match"] for row in rows}
    assert min(value for length, value in by_length.items() if length <= 16) > 0.98 and by_length[17] > 0.95
    assert {(row["arm"], row["encoding"], row["fit"], row["bos"]) for row in rows} == {
        ("my-llama", "rope", True, False)
    }
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["symbols_are"] == "own"


def test_past_its_limit_only_where_that_is_asked_for(trained):
    longer = SHORT | {"test_lengths": [17, 48, 600]}
    said = (
        r"holds 40 tokens, and longer L48 d3 \(49\), longer L600 d3 \(601\) need more: leave them out with --splits or "
    )
    said += "--lengths, or evaluate it on more than it was made for with --past-limit$"
    with pytest.raises(ValueError, match=said):
        run_evaluation(str(trained), task=longer, count=8)
    rows, _, where = run_evaluation(str(trained), task=longer, count=100, past_limit=True, splits=["longer"])
    near, _, far = (row["exact_match"] for row in rows)
    assert near > 0.95 and far < 0.8 and where is None, "600 tokens, of 16 at most in training"
    rows, *_ = run_evaluation(str(trained), task=longer, count=8, lengths=[8, 17])
    assert [(row["split"], row["length"]) for row in rows] == [("validation", 8), ("test", 8), ("longer", 17)]
    with pytest.raises(ValueError, match="have|has one of these lengths; there are: 4, 5, 6"):
        run_evaluation(str(trained), task=longer, count=8, lengths=[18])


def test_a_table_cannot_be_asked_past_its_end(models):
    with pytest.raises(ValueError, match="can't read past its 64 tokens: only rotary models can"):
        open_target(str(models / "gpt2"), SHORT, past_limit=True)
    with pytest.raises(ValueError, match=r"validation L4 d3 \(\d+\), .* and \d+ more need more: choose another task"):
        run_evaluation(str(models / "gpt2"), task=SHORT, prompt="few-shot", shots=20)


@pytest.mark.parametrize("prompt", ["symbols", "few-shot"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
@torch.no_grad()
def test_scores_are_those_of_the_text_read_by_hand(name, prompt, models, tmp_path):
    """From the words in evaluation.json: write the text, let the tokenizer split it, take the likeliest symbol."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = (cls.from_pretrained(models / name) for cls in (AutoModelForCausalLM, AutoTokenizer))
    options = {"task": SMALL, "prompt": prompt, "shots": 2, "count": 30, "splits": ["longer"], "out": tmp_path}
    rows, said, _ = run_evaluation(str(models / name), **options)
    symbols = json.loads((tmp_path / "evaluation.json").read_text())["symbols"]
    assert "symbols: ' a' ' b'" in said
    task = open_target(str(models / name), SMALL, prompt=prompt, shots=2).task
    for row in rows:
        tokens, labels = examples(task, 0, "longer", Cell(row["length"], 3), 0, 30)
        right = 0
        for sequence, label in zip(tokens, labels[:, -1], strict=True):
            text = "".join(symbols[task.vocabulary[token]][1] for token in sequence[:-1])
            logits = model(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)).logits[0, -1]
            best = max(symbols, key=lambda one: logits[symbols[one][0]])
            right += best == task.vocabulary[label]
        assert row["exact_match"] == pytest.approx(right / 30)
        assert row["bos"] is True, "its tokenizer begins a text with a token"


def test_rows_of_all_kinds_stand_in_one_report(models, finished_run, tmp_path):
    shutil.copytree(finished_run, tmp_path / "run")
    ours, *_ = run_evaluation(str(tmp_path / "run"), count=8)
    theirs, *_ = run_evaluation(str(models / "gpt2"), task=SHORT, count=8)
    shown, *_ = run_evaluation(
        str(models / "llama"), task=SMALL, count=8, prompt="few-shot", arm="Llama", panel="shown"
    )
    for rows in (theirs, shown):
        assert all(set(row) == {*ours[0], "prompt", "symbols"} for row in rows)
    assert {(row["arm"], row["run"], row["panel"]) for row in shown} == {("Llama", "llama", "shown")}
    assert read_rows(tmp_path / "run" / "results.jsonl") == ours
    paths = report(ours + theirs + shown, tmp_path / "report")
    text = paths.markdown.read_text()
    assert "gpt2" in text and "Llama" in text and "None" not in text and "nan" not in text


def test_a_foreign_model_reads_its_own_paste(models):
    """What it would write after the prompt: as transformers' own greedy decoding within the task's symbols."""
    spec = {"name": "unique_copy", "layout": "tight", "symbols": 12, "min_count": 3, "max_count": 4, "test_counts": [5]}
    target = open_target(str(models / "llama"), task=spec, prompt="few-shot", shots=2)
    about = target.about
    tokens, labels = (
        torch.from_numpy(part) for part in examples(target.task, 0, "test", target.task.cells("test")[0], 0, 3)
    )
    freely, ids = predict_freely(target.model, tokens, labels), torch.tensor([i for i, _ in about["symbols"].values()])
    for row, wanted, found in zip(tokens, labels, freely, strict=True):
        places = (wanted != -100).nonzero().squeeze(1)
        assert places.tolist() == list(range(places[0], places[-1] + 1)), "one paste, at the end"
        prompt = torch.cat([torch.tensor(about["prefix"], dtype=torch.long), ids[row[: places[0]]]])[None]
        written = target.model.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=len(places),
            do_sample=False,
            prefix_allowed_tokens_fn=lambda *_: ids.tolist(),
        )[0, prompt.shape[1] :]
        assert ids[found[places]].tolist() == written.tolist()
    (row, *_), _, _ = run_evaluation(
        str(models / "llama"), task=spec, prompt="few-shot", shots=2, count=4, splits=["test"], free_running=True
    )
    assert row["free_running_accuracy"] is not None


def test_a_few_cells_asked_again_leave_the_others(finished_run, models, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "copied")
    before, cell = read_rows(run / "results.jsonl"), itemgetter("split", "length", "distance")
    rows, *_ = run_evaluation(str(run), splits=["longer"], lengths=[32], count=6, arm="renamed")
    after = read_rows(run / "results.jsonl")
    assert sorted(map(cell, after)) == sorted(map(cell, before)) and len(rows) == 1 < len(before)
    assert {cell(row) for row in after if row["count"] == 6} == {cell(rows[0])}
    assert {(row["arm"], row["run"]) for row in after} == {("renamed", "copied")}, "one run has one name"

    def measured(rows):
        return {cell(row): row["exact_match"] for row in rows if row["count"] != 6}

    assert measured(after).items() <= measured(before).items()

    out, again = tmp_path / "out", {"splits": ["test"], "count": 8, "out": tmp_path / "out"}
    run_evaluation(str(models / "gpt2"), task=SHORT, splits=["longer"], count=8, out=out)
    kept = read_rows(out / "results.jsonl")
    run_evaluation(str(models / "gpt2"), task=SHORT, **again)
    assert read_rows(out / "results.jsonl")[: len(kept)] == kept
    text = (out / "results.jsonl").read_text()
    for name, other in (("llama", {}), ("gpt2", {"data_seed": 1}), ("gpt2", {"prompt": "few-shot"})):
        with pytest.raises(
            ValueError, match=r"out holds rows of another evaluation \(.*differ\): choose another folder"
        ):
            run_evaluation(str(models / name), task=SHORT, **again | other)
    with pytest.raises(ValueError, match=r"another evaluation \(task"):
        run_evaluation(str(models / "gpt2"), task=SHORT | {"symbols": 4}, **again)
    assert (out / "results.jsonl").read_text() == text


def test_ours_may_be_asked_more_of_its_task_but_no_other(finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    before = (run / "results.jsonl").read_text()
    rows, _, where = run_evaluation(str(run), task={"test_lengths": [24]}, splits=["longer"], count=8)
    assert [row["length"] for row in rows] == [24] and where is None and (run / "results.jsonl").read_text() == before
    *_, where = run_evaluation(str(run), splits=["longer"], count=8, out=tmp_path / "out", batch_tokens=40)
    assert where == tmp_path / "out" / "results.jsonl" and (run / "results.jsonl").read_text() == before
    with pytest.raises(ValueError, match="was trained on other symbols than task 'induction' has"):
        run_evaluation(str(run), task={"name": "induction"})
    for option in ({"data_seed": 3}, {"past_limit": True}, {"prompt": "few-shot"}):
        with pytest.raises(ValueError, match="is a run of ours: it has its seed and its limit"):
            run_evaluation(str(run), **option)


def test_rows_of_another_model_do_not_overwrite_a_runs(finished_run, models, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    with pytest.raises(ValueError, match="is a run folder, whose rows are its own"):
        run_evaluation(str(models / "gpt2"), task=SHORT, out=run)


class Cramped(torch.nn.Module):
    """Memory for so many sequences, and no more."""

    def __init__(self, model, room):
        super().__init__()
        self.model, self.room, self.asked = model, room, []

    def forward(self, input_ids, **options):
        self.asked.append(len(input_ids))
        if len(input_ids) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return self.model(input_ids, **options)


def test_batches_are_halved_until_they_fit():
    task = build_task(SMALL)
    model = Translated(tiny.llama(18), list(range(18)))
    wanted = Measurement(model, task, 0, 100, 10**6).scores("test", Cell(6, 3))
    cramped = Cramped(model, room=30)
    halved = Measurement(cramped, task, 0, 100, 10**6).scores("test", Cell(6, 3))
    assert cramped.asked == [100, 50, 25, 25, 25, 25]
    assert all((halved.sequences[key] == wanted.sequences[key]).all() for key in ("answers_correct", "answers"))
    with pytest.raises(RuntimeError, match=r"memory doesn't suffice for one sequence of 7 tokens \(L6 d3\)"):
        Measurement(Cramped(model, room=0), task, 0, 2, 10**6).scores("test", Cell(6, 3))


def test_text_is_split_by_the_models_own_tokenizer(models, tmp_path):
    text = tmp_path / "corpus.txt"
    text.write_text("\n\n".join(f"it is a {word} of no use to an {word}" for word in tiny.WORDS * 20))
    spec = {"name": "text", "dataset": str(text), "length": 16, "test_lengths": [16, 32]}
    rows, said, _ = run_evaluation(str(models / "llama"), task=spec, count=4, out=tmp_path / "out")
    assert [row["length"] for row in rows] == [16, 16, 32] and all(row["perplexity"] > 1 for row in rows)
    assert "symbols" not in said
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["task"]["tokenizer"] == str(models / "llama")


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_what_a_tokenizer_puts_before_a_text_stands_before_each_window(name, models, tmp_path):
    """Nats per token, once more with the model alone on [beginning, window]; the row says so."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    text = tmp_path / "corpus.txt"
    text.write_text("\n\n".join(f"it is a {word} of no use to an {word}" for word in tiny.WORDS * 20))
    spec = {"name": "text", "dataset": str(text), "tokenizer": str(models / name), "length": 16, "test_lengths": [16]}
    (row,), *_ = run_evaluation(str(models / name), task=spec, count=3, splits=["test"])
    tokenizer, model = AutoTokenizer.from_pretrained(models / name), AutoModelForCausalLM.from_pretrained(models / name)
    prefix = tokenizer("it")["input_ids"][: -len(tokenizer("it", add_special_tokens=False)["input_ids"])]
    windows = examples(build_task(spec), 0, "test", Cell(16, None), 0, 3)[0]
    whole = torch.tensor([[*prefix, *window] for window in windows.tolist()])
    with torch.no_grad():
        logits = model(whole).logits[:, len(prefix) : -1]
    nats = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(windows[:, 1:]).flatten())
    assert row["nll"] == pytest.approx(float(nats), abs=1e-5)
    assert prefix and row["bos"] is True


def test_a_run_on_text_is_asked_its_text(tmp_path):
    from hf_posgen.training.trainer import train

    text = tmp_path / "corpus.txt"
    text.write_text("\n\n".join(f"it is a {word} of no use to an {word}" for word in tiny.WORDS * 20))
    task = {"name": "text", "dataset": str(text), "length": 16, "test_lengths": [16, 32]}
    run = train(small_run(task=task, train={"steps": 1}), tmp_path / "run", quiet=True, evaluate=False)
    rows, *_ = run_evaluation(str(run), count=4)
    assert [row["length"] for row in rows] == [16, 16, 32]
    rows, *_ = run_evaluation(str(run), count=4, task={"test_lengths": [16, 64]}, splits=["longer"])
    assert [row["length"] for row in rows] == [64]
    with pytest.raises(ValueError, match="was trained on other symbols than task 'fixed_offset' has"):
        run_evaluation(str(run), task=SHORT)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "names no task: name one with --task (posgen list tasks)"),
        (("--task.offset", "2"), "a task is a name or a dict"),
        (("--task", "fixd_offset"), "did you mean 'fixed_offset'"),
        (("--task", "irregular_echo"), "is real-valued: no language model reads it"),
        ((*TYPED, "--prompt", "few"), "prompt is 'few'; allowed: symbols, few-shot"),
        ((*TYPED, "--task.symbols", "90"), "words of one token that the model holds, and task 'fixed_offset' needs 92"),
        ((*TYPED, "--splits", "sideways"), "has no split 'sideways'"),
        ((*TYPED, "--lengths", "many"), "'many' is no list of whole numbers"),
        ((*TYPED, "--count", "0"), "evaluation.count is 0; it must be at least 1"),
        ((*TYPED, "--batch-tokens", "0"), "evaluation.batch_tokens is 0; it must be at least 1"),
        ((*TYPED, "--past-limt"), "unknown option --past-limt; did you mean --past-limit?"),
    ],
)
def test_wrong_usage(arguments, said, models, capsys):
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(models / "gpt2"), *arguments])
    printed = capsys.readouterr()
    (line,) = printed.err.strip().splitlines()
    assert left.value.code == 2 and said in line and printed.out == ""


def test_what_is_typed_and_seen(models, tmp_path, capsys):
    main(["evaluate", str(models / "bare"), *TYPED, "-o", str(tmp_path / "out"), "--lengths", "4-8,17"])
    told = capsys.readouterr().out
    assert "Fixed offset: exact match by length" in told and "4 trained" in told
    assert told.endswith(f"Rows: {tmp_path / 'out' / 'results.jsonl'}\n")
    main(["evaluate", str(models / "bare"), *TYPED])
    assert capsys.readouterr().out.endswith("Rows: not kept; -o OUT keeps them\n")


def test_models_on_the_hub(hub, models, finished_run, tmp_path):
    """In another process: the client reads the Hub's address once."""
    push(shutil.copytree(finished_run, tmp_path / "rope-seed0"), "tester/ours", token=WRITE, endpoint=hub.endpoint)
    code = f"""
    import json
    from huggingface_hub import HfApi
    from hf_posgen.cli.dispatch import main
    api = HfApi()
    api.create_repo("tester/theirs")
    api.upload_folder(repo_id="tester/theirs", folder_path={str(models / "llama")!r})
    def ask(*arguments):
        try:
            main(["evaluate", *arguments])
        except SystemExit as left:
            print("left with", left.code)
    ask("tester/ours", "-o", "ours", "--count", "8")
    ask("tester/ours", "-o", "early", "--count", "8", "--revision", "step-000010")
    ask("tester/theirs", *{TYPED!r}, "-o", "theirs")
    ask("tester/nothing", *{TYPED!r})
    ask("tester/theirs", *{TYPED!r}, "--revision", "next")
    ask("tester/theirs")
    """
    told = python(code, hub.environment(tmp_path / "home", WRITE), tmp_path / "home")
    for said in (
        "tester/nothing is neither a folder nor a model on the Hub that this token may see",
        "tester/theirs has no revision 'next'",
        "tester/theirs is no run of ours, so it names no task",
    ):
        assert f"posgen: {said}" in told
    assert told.count("left with 2") == 3 and WRITE not in told
    rows = {name: read_rows(tmp_path / "home" / name / "results.jsonl") for name in ("ours", "early", "theirs")}
    at = {name: {row["revision"] for row in found} for name, found in rows.items()}
    heads = hub.repo("tester/ours").refs
    assert at["ours"] == {heads["main"]} and at["early"] == {heads["step-000010"]}
    assert at["theirs"] == {hub.repo("tester/theirs").refs["main"]}
    assert {(row["arm"], row["run"], row["step"]) for row in rows["ours"]} == {("rope", "tester/ours", 12)}
    assert {(row["arm"], row["run"], row["step"]) for row in rows["theirs"]} == {
        ("tester/theirs", "tester/theirs", None)
    }
    assert (
        f"tester/ours at {heads['main'][:7]}: rope" in told
        and Path(tmp_path / "home" / "theirs" / "evaluation.json").is_file()
    )
