"""Your own text, against a corpus that the test writes: windows, splits, what is refused, and training on it."""

import json
import math
import re

import datasets
import numpy as np
import pytest
import torch

from hf_posgen.common.files import read_rows
from hf_posgen.evaluation.runs import load_run, save_evaluation
from hf_posgen.metrics.functional import nats_by_position
from hf_posgen.report.markdown import report, summary_tables
from hf_posgen.run.build import build_run
from hf_posgen.tasks import Cell, build_task, examples, load_task, resolve_task
from hf_posgen.training.trainer import Stopped, train
from tests.helpers.training_helpers import assert_same_run

WORDS = "the cat sat on a mat and saw that dog run to its tree while birds sang".split()  # noqa: SIM905
EOS, BOS = 256, 257


def documents(count, seed=0):
    rng = np.random.default_rng(seed)
    return [f"{i}: " + " ".join(rng.choice(WORDS, rng.integers(5, 40))) + "." for i in range(count)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "pets.txt"
    path.write_text("\n\n".join(documents(400)))
    return str(path)


def text(corpus, **parameters):
    return build_task({"name": "text", "dataset": corpus, "length": 16, **parameters})


def stream(task, split):
    """A split's tokens, from its windows."""
    cell, held = Cell(task.length, None), task.corpus.streams[split]
    whole = len(held) // task.length
    rows = [task.block(0, split, cell, i, 1)[0][0] for i in range(whole)]
    return np.concatenate(rows), held


def test_windows_of_a_split_are_its_documents_in_order(corpus):
    """Joined by hand: bytes of each document, then the end token."""
    task = text(corpus)
    for split, first, last in (("validation", 360, 380), ("test", 380, 400)):
        wanted = [token for one in documents(400)[first:last] for token in (*one.encode(), EOS)]
        tokens, held = stream(task, split)
        assert len(held) == len(wanted) and tokens.tolist() == wanted[: len(tokens)]
        assert len(wanted) - len(tokens) < task.length
    assert task.vocab_size == 259 and task.eos_token_id == EOS
    decoded = task.corpus.tokenizer.decode(examples(task, 0, "test", Cell(32, None), 0, 1)[0][0])
    assert decoded == documents(400)[380][:32]


def test_every_token_but_a_windows_first_is_scored(corpus):
    tokens, labels = examples(text(corpus), 0, "test", Cell(64, None), 0, 3)
    assert (labels[:, 1:] == tokens[:, 1:]).all() and (labels[:, 0] == -100).all()
    tokens, labels = examples(text(corpus, bos=True), 0, "test", Cell(64, None), 0, 3)
    assert tokens.shape == (3, 65) and (tokens[:, 0] == BOS).all() and (labels[:, 0] == -100).all()
    assert (labels[:, 1:] == tokens[:, 1:]).all(), "after the anchor the first token has something before it"


def test_each_epoch_holds_each_window_once_in_an_order_of_its_own(corpus):
    task = text(corpus)
    cell, windows = Cell(16, None), len(task.corpus.streams["train"]) // 16
    wanted = sorted(task.corpus.streams["train"].read(np.arange(windows) * 16, 16).tolist())
    epochs = [examples(task, 0, "train", cell, e * windows, (e + 1) * windows)[0].tolist() for e in (0, 1)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == wanted
    assert epochs[0] != epochs[1] and epochs[0][:9] != wanted[:9]
    assert examples(task, 1, "train", cell, 0, 9)[0].tolist() != epochs[0][:9], "another seed, another order"
    assert examples(task, 0, "train", cell, 5, 9)[0].tolist() == epochs[0][5:9], "whoever asks"


def test_every_length_reads_the_same_text(corpus):
    task = text(corpus, test_lengths=[16, 32, 128])
    assert task.splits()["longer"] == (Cell(32, None), Cell(128, None)) and task.cells("test") == (Cell(16, None),)
    for count in (3, 20, 10**6):
        read = {}
        for split, length in (("test", 16), ("longer", 32), ("longer", 128)):
            n = task.available(split, Cell(length, None), count)
            read[length] = np.concatenate([task.block(0, split, Cell(length, None), i, 1)[0][0] for i in range(n)])
        assert (read[16] == read[32]).all() and (read[16] == read[128]).all()
        assert len(read[16]) == max(1, min(16 * count, len(task.corpus.streams["test"])) // 128) * 128
    assert task.available("train", Cell(16, None), 10**9) == 10**9, "training goes round"


def test_documents_apart_begin_at_position_0_and_are_not_asked_to_guess_each_other(corpus):
    task = text(corpus, documents="apart")
    assert task.columns == ("input_ids", "labels", "position_ids")
    tokens, labels, index = examples(task, 0, "test", Cell(256, None), 0, 2)
    for row, wanted, where in zip(tokens, labels, index, strict=True):
        expected = 0
        for token, label, place in zip(row, wanted, where, strict=True):
            assert place == expected and (label == -100) == (place == 0)
            expected = 0 if token == EOS else expected + 1


def test_apart_nothing_is_seen_of_another_document(corpus, tmp_path):
    from hf_posgen.run.build import build_model

    run = small_run(text(corpus, documents="apart", length=32), position_encoding="rope")
    model = build_model(run).eval()
    tokens, _, index = map(torch.from_numpy, examples(run.built_task, 0, "test", Cell(256, None), 0, 1))
    start = int((index[0] == 0).nonzero()[2])
    cut = slice(start, start + 12)
    together = model(input_ids=tokens, position_ids=index, use_cache=False).logits[:, cut]
    alone = model(input_ids=tokens[:, cut]).logits
    assert torch.allclose(together, alone, atol=1e-5)
    joined = model(input_ids=tokens).logits[:, cut]
    assert not torch.allclose(joined, alone, atol=1e-3)


def test_splits_that_a_corpus_brings_are_kept(tmp_path):
    for split, count in (("train", 60), ("validation", 20), ("test", 20)):
        lines = [json.dumps({"body": one}) for one in documents(count, seed=count)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines))
    task = text(str(tmp_path), column="body")
    spec = resolve_task(task)
    assert [spec[f"{split}_split"] for split in ("train", "validation", "test")] == ["train", "validation", "test"]
    assert len(task.corpus.streams["train"].starts) == 60


def test_splits_are_disjoint_by_document(corpus):
    task = text(corpus)
    seen = [
        set(task.corpus.tokenizer.decode(stream(task, split)[0]).split("<|eos|>")[1:-1])
        for split in ("train", "validation", "test")
    ]
    assert all(seen) and not seen[0] & seen[1] and not seen[0] & seen[2] and not seen[1] & seen[2]
    with pytest.raises(ValueError, match=r"train_split 'train\[:90%\]' and test_split 'train\[80%:\]' share documents"):
        text(corpus, test_split="train[80%:]")


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"dataset": None}, "dataset is not given: name a file, a folder"),
        ({"dataset": "/nowhere/at/all"}, "'/nowhere/at/all' can't be opened"),
        ({"column": "txet"}, "'txet'.*did you mean 'text'.*allowed: text"),
        (
            {"tokenizer": "/nowhere/tokenizer"},
            "tokenizer '/nowhere/tokenizer' can't be opened.*'bytes' needs no download",
        ),
        ({"test_lengths": [16, 10**6]}, r"split 'test' has \d+ tokens: too few for a window of 1000000"),
        ({"length": 60000}, "split 'train' has .* too few for a window of 60000"),
        ({"length": 1}, "length is 1; it must be 2 to 65,536"),
        ({"test_lengths": [8, 32]}, r"test_lengths \[8\] are below length 16"),
        ({"validation_split": "dev"}, "validation_split is 'dev'.*there are: train"),
        ({"validation_split": "train[99%:99%]"}, "holds none of the documents \\(train: 400\\)"),
        ({"fingerprint": "0123"}, "is not what it was"),
        ({"documents": "together"}, "documents is 'together'; allowed: joined, apart"),
        ({"documents": "apart", "bos": True}, "bos goes with documents 'joined'"),
        ({"sample_by": "word"}, "sample_by is 'word'; allowed: line, paragraph, document"),
        ({"lenght": 8}, "did you mean 'length'"),
    ],
)
def test_bad_input_is_one_sentence(corpus, changes, words):
    with pytest.raises(ValueError, match=words) as caught:
        text(corpus, **changes)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_a_corpus_without_text_and_a_tokenizer_without_words(tmp_path, corpus):
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n \n\n")
    with pytest.raises(ValueError, match=r"holds none of the documents \(train: 1\)"):
        text(str(empty))
    blanks = tmp_path / "blanks.jsonl"
    blanks.write_text("\n".join(['{"text": " "}'] * 40))
    with pytest.raises(ValueError, match="holds no text in column 'text'"):
        text(str(blanks))
    numbers = tmp_path / "numbers.jsonl"
    numbers.write_text("\n".join(['{"n": 1}'] * 40))
    with pytest.raises(ValueError, match="'text'; allowed:"):
        text(str(numbers))
    nothing = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE({}, [])), eos_token="[E]")
    nothing.save_pretrained(tmp_path / "nothing")
    with pytest.raises(ValueError, match="has no vocabulary: train it first"):
        text(corpus, tokenizer=str(tmp_path / "nothing"))
    no_bos = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "[U]": 1}, "[U]")))
    no_bos.save_pretrained(tmp_path / "no_bos")
    with pytest.raises(ValueError, match="has no token for bos"):
        text(corpus, tokenizer=str(tmp_path / "no_bos"), bos=True)


def test_text_is_neither_loaded_nor_exported(corpus, tmp_path):
    from hf_posgen.tasks import export_task

    for call in (
        lambda: load_task("text"),
        lambda: export_task("text", tmp_path / "x"),
        lambda: export_task(text(corpus), tmp_path / "x"),
    ):
        with pytest.raises(ValueError, match="'text' is your own data"):
            call()


def test_any_tokenizer_and_what_ships_in_a_package(tmp_path):
    """A tokenizer trained here, on the licences that Python packages bring."""
    from importlib.metadata import distribution

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    for name in ("numpy", "datasets", "jinja2", "pyyaml"):
        found = [file for file in distribution(name).files if "LICENSE" in file.name.upper()]
        (tmp_path / f"{name}.txt").write_text(found[0].locate().read_text())
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<end>"], show_progress=False)
    bpe.train([str(path) for path in tmp_path.glob("*.txt")], trainer)
    PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<end>").save_pretrained(tmp_path / "bpe")
    task = text("text", data_files=str(tmp_path / "*.txt"), tokenizer=str(tmp_path / "bpe"))
    assert task.vocab_size == len(AutoTokenizer.from_pretrained(tmp_path / "bpe")) <= 400 and task.eos_token_id == 0
    assert max(examples(task, 0, "train", Cell(16, None), 0, 200)[0].max(), 0) < task.vocab_size
    assert (task.bos_token_id, task.pad_token_id) == (None, None)


def small_run(task, position_encoding="alibi", **changes):
    return build_run(
        {
            "task": resolve_task(task),
            "model": {
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "hidden_dropout": 0.1,
                "position_encoding": position_encoding,
            },
            "train": {
                "steps": 30,
                "batch_size": 8,
                "learning_rate": 0.01,
                "cpu": True,
                "save_every": 10,
                "log_every": 5,
            }
            | {"validate_every": 10, "validation_count": 20, "trackers": []}
            | changes,
            "evaluation": {"count": 40},
        }
    )


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("text") / "alibi"
    return train(small_run(text(corpus)), out, quiet=True)


def test_a_run_is_measured_in_perplexity(finished):
    rows = read_rows(finished / "results.jsonl")
    assert [(row["split"], row["length"]) for row in rows] == [
        ("validation", 16),
        ("test", 16),
        *(("longer", n) for n in (32, 64, 128, 256)),
    ]
    for row in rows:
        assert row["perplexity"] == pytest.approx(math.exp(row["nll"]))
        assert row["perplexity_low"] < row["perplexity"] < row["perplexity_high"]
        assert row["exact_match"] is None and 0 < row["token_accuracy"] < 1 and row["ceiling"] is None
        assert row["distance"] is None and row["fit"] is True
        assert row["perplexity"] < row["baselines"]["unigram_perplexity"] < 259
        assert sum(one["count"] for one in row["positions"]) == row["count"] * (row["length"] - 1)
    checks = [line for line in read_rows(finished / "train.jsonl") if line.get("split") == "validation"]
    assert checks[-1]["nll"] < checks[0]["nll"] and "exact_match" not in checks[0]
    assert checks[-1]["perplexity"] == pytest.approx(math.exp(checks[-1]["nll"]))


def test_rows_are_what_a_loop_over_windows_finds(finished):
    """Perplexity by length and by position, once more with the model's own loss, window by window."""
    _, task, model = load_run(finished)
    row = next(row for row in read_rows(finished / "results.jsonl") if row["length"] == 64)
    nats, labels = [], []
    for i in range(row["count"]):
        tokens = torch.from_numpy(task.corpus.streams["test"].read(np.array([64 * i]), 64))
        with torch.no_grad():
            logits = model(tokens).logits[0, :-1]
        losses = torch.nn.functional.cross_entropy(logits, tokens[0, 1:], reduction="none")
        nats.append([0.0, *losses.tolist()])
        labels.append([-100, *tokens[0, 1:].tolist()])
    by = nats_by_position(nats, labels, bucket=2)
    assert row["nll"] == pytest.approx(np.average(by["nats"], weights=by["count"]), abs=1e-5)
    assert [one["start"] for one in row["positions"]] == by["start"].tolist()
    assert [one["nats"] for one in row["positions"]] == pytest.approx(by["nats"].tolist(), abs=1e-5)


def test_the_tokenizer_travels_with_the_checkpoint(finished):
    from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

    tokenizer = AutoTokenizer.from_pretrained(finished)
    assert tokenizer.decode(tokenizer("the cät")["input_ids"]) == "the cät"
    model = AutoModelForCausalLM.from_pretrained(finished)
    assert model.config.eos_token_id == EOS and model.config.vocab_size == len(tokenizer)
    said = pipeline("text-generation", model=model, tokenizer=tokenizer)("the cat", max_new_tokens=5, do_sample=False)
    assert said[0]["generated_text"].startswith("the cat")


def test_an_interrupted_run_is_bit_equal(corpus, tmp_path):
    run = small_run(text(corpus))
    straight = train(run, tmp_path / "straight", evaluate=False, quiet=True)

    def stop(step):
        if step == 17:
            raise Stopped("here")

    with pytest.raises(Stopped):
        train(run, tmp_path / "resumed", evaluate=False, quiet=True, on_step=stop)
    assert_same_run(straight, train(run, tmp_path / "resumed", evaluate=False, quiet=True))


def test_a_run_does_not_go_on_with_another_text(corpus, tmp_path):
    copy = tmp_path / "mine.txt"
    copy.write_text("\n\n".join(documents(300)))
    run = small_run(text(str(copy)))
    copy.write_text("\n\n".join(documents(299)) + "\n\nsomething else altogether")
    with pytest.raises(ValueError, match="is not what it was"):
        build_task(run.task)


def test_the_best_weights_are_those_of_the_lowest_perplexity(corpus, tmp_path):
    out = train(small_run(text(corpus), select="best", learning_rate=0.5, steps=40), tmp_path / "run", quiet=True)
    checks = [line["nll"] for line in read_rows(out / "train.jsonl") if line.get("split") == "validation"]
    run, task, model = load_run(out)
    from hf_posgen.evaluation.validation import validate

    assert validate(model, task, run)["nll"] == pytest.approx(min(checks), abs=1e-6)


def test_rates_and_runs_are_chosen_by_nats():
    from hf_posgen.sweep.selection import validation_score

    copying = [{"token_accuracy": 0.4, "nll": 2.0}, {"token_accuracy": 0.3, "nll": 1.5}]
    text = [one | {"perplexity": math.exp(one["nll"])} for one in copying]
    assert max(text, key=validation_score)["nll"] == 1.5
    assert max(copying, key=validation_score)["token_accuracy"] == 0.4


def test_past_a_learned_table(corpus, tmp_path):
    task = text(corpus, test_lengths=[16, 32])
    tree = {"task": resolve_task(task), "model": {"position_encoding": "learned", "max_position_embeddings": 16}}
    with pytest.raises(ValueError, match="learned table has 16 rows.*length 32 needs 32"):
        build_run(tree)
    tree["model"]["out_of_range"] = "clamp"
    assert build_run(tree).model["out_of_range"] == "clamp"


def test_a_report_tells_perplexity_by_length_and_by_position(finished, tmp_path):
    kept = read_rows(finished / "results.jsonl")
    rows = [row | {"seed": seed, "model_digest": f"weights {seed}"} for seed in (0, 1, 2) for row in kept]
    paths = report(rows, tmp_path / "report")
    assert [path.stem for path in paths.figures] == ["overview", "text_length", "text_position"]
    told = paths.markdown.read_text()
    assert "Perplexity by length (trained: 16)" in told and "token<br>frequencies" in told
    assert "solved up to length" in told and "exact match by length" not in told.lower()
    assert "perplexity by length" in summary_tables(rows)
    page = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', paths.page.read_text(), re.DOTALL)[1])
    assert {one["key"]: one["share"] for one in page["panels"][0]["metrics"]} == {
        "token_accuracy": True,
        "perplexity": False,
    }
    assert page["panels"][0]["shown"] == "perplexity"


def test_solved_up_to_is_the_length_where_perplexity_stays(finished):
    from hf_posgen.results.frame import frame
    from hf_posgen.results.headlines import solved_up_to
    from hf_posgen.results.panel import Panel

    rows = [row for row in read_rows(finished / "results.jsonl") if row["split"] != "validation"]
    for factors, wanted in (((1, 1.04, 1.04, 1, 1), 256), ((1, 0.5, 1.06, 1, 1), 32), ((1, 1.06, 1, 1, 1), 16)):
        made = [row | {"perplexity": 10.0 * factor} for row, factor in zip(rows, factors, strict=True)]
        assert solved_up_to(Panel(frame(made)), "length") == wanted


def test_points_by_position_are_means_over_their_tokens(finished):
    from hf_posgen.report.positions import by_position
    from hf_posgen.results.frame import frame

    rows = read_rows(finished / "results.jsonl")
    points = by_position(frame(rows))
    longest = rows[-1]
    assert points["position"].is_monotonic_increasing and points["position"].max() < 256
    inside = points[points["position"] < 16]["nats"].tolist()
    assert inside == pytest.approx([one["nats"] for one in longest["positions"][:8]])
    far = [one for one in longest["positions"] if one["start"] >= 16 * 2**3.75]
    mean = sum(one["nats"] * one["count"] for one in far) / sum(one["count"] for one in far)
    assert points["nats"].iloc[-1] == pytest.approx(mean)


def test_a_card_says_language_model(finished, tmp_path):
    import shutil

    from hf_posgen.card.model_card import card

    copy = shutil.copytree(finished, tmp_path / "run")
    told = card(copy, "me/text-alibi")
    assert "small language model" in told and "no language\nmodel" not in told and "uniform random symbols" not in told
    assert "validation perplexity below that of the token frequencies" in told and "token frequencies" in told
    assert "datasets:" not in told.split("---")[1], "a file of the user's own has no repository"
    assert not list((copy / ".eval_results").glob("*")) if (copy / ".eval_results").exists() else True


def test_evaluation_again(finished, tmp_path):
    import shutil

    copy = shutil.copytree(finished, tmp_path / finished.name)
    before = read_rows(copy / "results.jsonl")
    assert save_evaluation(copy) == before
    assert len(task_of(copy).vocabulary) == 259
    fewer = save_evaluation(copy, count=5, splits=["longer"])
    assert {row["split"] for row in fewer} == {"longer"} and fewer[-1]["count"] == 1


def task_of(folder):
    return load_run(folder)[1]


def test_datasets_is_left_as_it_was(corpus):
    assert not datasets.are_progress_bars_disabled()
