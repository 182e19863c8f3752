"""The `evaluate` modules and the plain functions behind them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import evaluate
import numpy as np
import pytest
from huggingface_hub import RepoCard

import hf_posgen.metrics
from hf_posgen.metrics.functional import IGNORE, nats_by_position, score, score_ragged, share, wilson
from hf_posgen.metrics.posgen_extrapolation.posgen_extrapolation import split_of
from hf_posgen.results.frame import frame
from hf_posgen.results.headlines import far, solved_up_to
from hf_posgen.results.panel import Panel

HOME = Path(hf_posgen.metrics.__file__).parent
NAMES = ("posgen_accuracy", "posgen_perplexity", "posgen_extrapolation")


@pytest.fixture(scope="module", autouse=True)
def private_cache(tmp_path_factory):
    """evaluate writes where it is told, and not into the home of whoever runs the tests."""
    cache = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate.config, "HF_METRICS_CACHE", cache)
        patch.setattr(evaluate.config, "HF_EVALUATE_CACHE", cache)
        patch.setattr(evaluate.config, "HF_MODULES_CACHE", str(cache / "modules"))
        patch.setattr(evaluate.loading, "init_hf_modules", lambda *_: _modules(cache / "modules"))
        yield cache


def _modules(path: Path) -> str:
    path.mkdir(parents=True, exist_ok=True)
    (path / "__init__.py").touch()
    if str(path) not in sys.path:
        sys.path.append(str(path))
    return str(path)


def naive(predictions, labels, paste):
    """Straight from the words: walk each sequence, gather runs of scored places."""
    out = []
    for mine, wanted in zip(predictions, labels, strict=True):
        runs, before = [], False
        for guess, label in zip(mine, wanted, strict=True):
            if label == IGNORE:
                before = False
                continue
            if not before:
                runs.append([])
            runs[-1].append(guess == label)
            before = True
        hits = [hit for run in runs for hit in run]
        one = {"tokens_correct": sum(hits), "tokens_scored": len(hits)}
        one |= {"answers": len(runs) if paste else len(hits)}
        one |= {"answers_correct": sum(map(all, runs)) if paste else sum(hits)}
        if paste:
            one |= {"first_correct": sum(run[0] for run in runs), "first_scored": len(runs)}
            one |= {"rest_correct": sum(sum(run[1:]) for run in runs), "rest_scored": len(hits) - len(runs)}
        out.append(one)
    return {key: [one[key] for one in out] for key in out[0]}


@pytest.mark.parametrize("paste", [False, True])
def test_score_equals_its_naive_twin(paste):
    rng = np.random.default_rng(1)
    labels = np.where(rng.random((200, 17)) < 0.5, rng.integers(3, size=(200, 17)), IGNORE)
    predictions = np.where(rng.random(labels.shape) < 0.8, labels, rng.integers(3, size=labels.shape))
    scores, wanted = score(predictions, labels, paste), naive(predictions, labels, paste)
    assert set(scores) == set(wanted)
    for key, values in wanted.items():
        np.testing.assert_array_equal(scores[key], values, err_msg=key)


def test_score_where_nothing_is_asked():
    labels = np.full((2, 4), IGNORE)
    assert score(labels, labels, True)["answers"].tolist() == [0, 0]
    assert score(labels, labels, True)["tokens_correct"].tolist() == [0, 0], "-100 is never right"
    assert score_ragged([], [], False)["answers"].tolist() == []
    with pytest.raises(ValueError, match="sequence 1 has 2 predictions for 3 labels"):
        score_ragged([[1], [1, 2]], [[1], [1, 2, 3]], False)


def test_share_counts_only_sequences_that_ask():
    asked = np.array([1, 0, 1, 1, 0])
    assert share("x", np.array([1, 0, 1, 0, 0]), asked) == {
        "x": 2 / 3,
        "x_low": wilson(2, 3)[0],
        "x_high": wilson(2, 3)[1],
    }
    assert share("x", asked * 0, asked * 0)["x"] is None


def load(name, **options):
    return evaluate.load(str(HOME / name), **options)


@pytest.mark.parametrize("name", NAMES)
def test_a_module_stands_alone(name, tmp_path):
    """What is pushed as a Space is the folder: it must open from anywhere, and import nothing of ours."""
    folder = shutil.copytree(HOME / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    module = evaluate.load(str(folder))
    assert module.inputs_description and "Returns" in module.inputs_description
    for file in folder.glob("*.py"):
        assert not re.search(r"^\s*(from|import) (hf_posgen|\.\.)", file.read_text(), re.M)
    card = RepoCard.load(folder / "README.md", repo_type="space")
    assert {"evaluate", "metric"} <= set(card.data.tags) and card.data.sdk == "static"
    assert (folder / "index.html").is_file() and "evaluate" in (folder / "requirements.txt").read_text().split()


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_in_the_docstrings_hold(name):
    import doctest

    example = load(name).inputs_description.replace(f'evaluate.load("{name}")', "module")
    test = doctest.DocTestParser().get_doctest(example, {"module": load(name)}, name, None, 0)
    assert test.examples and doctest.DocTestRunner().run(test).failed == 0


def test_accuracy_by_cell_in_batches_of_any_length():
    module = load("posgen_accuracy")
    module.add_batch(
        predictions=[[0, 1, 2, 3], [0, 1, 9, 3]],
        references=[[IGNORE, 1, 2, IGNORE], [IGNORE, 1, 2, IGNORE]],
        length=[4, 4],
        distance=[1, 1],
    )
    module.add_batch(predictions=[[7, 7, 7, 7, 7]], references=[[7, IGNORE, 7, 8, 7]], length=[5], distance=[-1])
    found = module.compute(paste=True)
    four, five = found["cells"]
    assert (four["length"], four["distance"], four["count"]) == (4, 1, 2)
    assert four["exact_match"] == 0.5 and four["token_accuracy"] == 0.75
    assert four["first_accuracy"] == 1.0 and four["rest_accuracy"] == 0.5
    assert five["distance"] is None and five["exact_match"] == 0.5 and five["token_accuracy"] == 0.75
    assert found["exact_match"] == 0.5 and found["empty_cells"] == []
    assert 0 < four["exact_match_low"] < 0.5 < four["exact_match_high"] < 1


def test_an_empty_cell_is_named_and_not_averaged_away():
    module = load("posgen_accuracy")
    inputs = {"predictions": [[1], [1]], "references": [[1], [IGNORE]], "length": [1, 2], "distance": [-1, -1]}
    found = module.compute(**inputs, cells=[(1, None), (2, None), (48, 3)])
    assert found["empty_cells"] == ["L2", "L48 d3"]
    assert found["exact_match"] is None and found["token_accuracy"] is None
    assert found["cells"][0]["exact_match"] == 1.0 and found["cells"][2]["count"] == 0


def test_accuracy_agrees_with_the_function():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((50, 9)) < 0.4, rng.integers(3, size=(50, 9)), IGNORE)
    predictions = rng.integers(3, size=labels.shape)
    scores = score(predictions, labels, True)
    module = load("posgen_accuracy")
    found = module.compute(predictions=predictions, references=labels, length=[9] * 50, distance=[2] * 50, paste=True)
    assert found["exact_match"] == scores["answers_correct"].sum() / scores["answers"].sum()
    assert found["rest_accuracy"] == scores["rest_correct"].sum() / scores["rest_scored"].sum()


def test_perplexity_by_position():
    nats = [[9.0, 1.0, 3.0], [9.0, 2.0, 4.0, 5.0]]
    labels = [[IGNORE, 4, 4], [IGNORE, 4, 4, IGNORE]]
    found = load("posgen_perplexity").compute(predictions=nats, references=labels)
    assert [row["nats"] for row in found["positions"]] == [None, 1.5, 3.5, None]
    assert [row["count"] for row in found["positions"]] == [0, 2, 2, 0] and found["empty_positions"] == [0, 3]
    assert found["nats"] == 2.5 and found["perplexity"] == pytest.approx(np.exp(2.5))
    found = load("posgen_perplexity").compute(predictions=nats, references=labels, bucket=2)
    assert [(row["start"], row["nats"]) for row in found["positions"]] == [(0, 1.5), (2, 3.5)]


def test_perplexity_refuses_what_it_cannot_average():
    nothing = load("posgen_perplexity").compute(predictions=[[1.0]], references=[[IGNORE]])
    assert nothing["perplexity"] is None and nothing["empty_positions"] == [0]
    for nats, labels, bucket, said in (
        ([[1.0]], [[1]], 0, "bucket is 0"),
        ([[1.0, 2.0]], [[1]], 1, "sequence 0 has 2 nats for 1 labels"),
        ([[float("nan")]], [[1]], 1, "not a number"),
    ):
        with pytest.raises(ValueError, match=said):
            nats_by_position(nats, labels, bucket)


def test_extrapolation_summary():
    cells = [(64, d) for d in range(1, 21)] + [(128, d) for d in (4, 8, 12)]
    right = {(64, d): 100 if d <= 10 else 3 for d in range(1, 21)} | {(128, 4): 99, (128, 8): 98, (128, 12): 20}
    inputs = {"predictions": [], "references": [], "length": [], "distance": []}
    for cell in cells:
        for i in range(100):
            for key, value in zip(inputs, (int(i < right[cell]), 1, *cell), strict=True):
                inputs[key].append(value)
    module = load("posgen_extrapolation")
    found = module.compute(**inputs, train_length=(64, 64), train_distance=(4, 8), chance=0.03)
    assert found["longest_length"] == 128 and found["farthest_distance"] == 10
    assert found["in_distribution"] == 1.0 and found["nearer"] == 1.0 and found["longer"] == pytest.approx(0.985)
    assert found["farther"] == pytest.approx((2 + 10 * 0.03) / 12) and found["both"] == 0.2
    assert found["sum_over_distances"] == pytest.approx(10.3) and found["P"] == pytest.approx(2.3 / 8)
    assert found["P_invalid"] == "" and found["W"] == pytest.approx(2.0) and found["empty_cells"] == []


def test_extrapolation_summary_names_holes_and_refuses_nonsense():
    one = {"predictions": [1, 0], "references": [1, 0], "length": [4, 32], "distance": [-1, -1]}
    found = load("posgen_extrapolation").compute(**one, train_length=(4, 16), level=0.1)
    assert found["empty_cells"] == ["L32"] and found["longer"] is None and found["longest_length"] == 4
    assert found["P"] is None and found["farthest_distance"] is None
    with pytest.raises(ValueError, match="2 right answers of 1"):
        load("posgen_extrapolation").compute(
            predictions=[2], references=[1], length=[4], distance=[1], train_length=(4, 4)
        )


def test_the_module_and_the_report_give_the_same_numbers():
    """Each sequence asks several times, and chance, ceiling and the n-gram baseline change with the distance."""
    rng = np.random.default_rng(5)
    beside = {d: (0.02 + 0.001 * d, 1.0 - 0.01 * d, 0.9 / (1 + d)) for d in range(1, 25)}
    rows, inputs = [], {"predictions": [], "references": [], "length": [], "distance": []}
    cells = [("test" if 4 <= d <= 8 else "farther" if d > 8 else "nearer", 64, d) for d in range(1, 25)]
    cells += [("longer", length, d) for length in (96, 128) for d in range(4, 9)]
    for split, length, d in cells:
        asked = rng.integers(0, 6, size=80)
        chance, ceiling, ngram = beside[d]
        right = rng.binomial(asked, 0.97 if d < 12 and length < 128 else chance)
        row = {"run": "a", "arm": "a", "encoding": "none", "seed": 0, "fit": True, "task": "delay_copy", "split": split}
        row |= {"length": length, "distance": d, "train_length": 64, "train_distance": [4, 8], "chance": chance}
        rows.append(row | {"ceiling": ceiling, "baselines": {"ngram_2": ngram}} | share("exact_match", right, asked))
        for key, values in zip(inputs, (right, asked, [length] * 80, [d] * 80), strict=True):
            inputs[key] += [int(value) for value in values]
    run = frame(rows)
    options = {
        name: {d: values[i] for d, values in beside.items()} for i, name in enumerate(("chance", "ceiling", "ngram"))
    }
    found = load("posgen_extrapolation").compute(
        **inputs, train_length=(64, 64), train_distance=(4, 8), cells=[cell[1:] for cell in cells], **options
    )
    assert (
        (found["longest_length"], found["farthest_distance"])
        == (solved_up_to(Panel(run), "length"), solved_up_to(Panel(run), "distance"))
        == (96, 11)
    )
    numbers = far(Panel(run), "exact_match")
    names = ("sum_over_distances", "P", "P_overshoot", "P_ngram", "W")
    of_the_report = (numbers.total, numbers.ratio, numbers.overshoot, numbers.ngram, numbers.won)
    assert [found[name] for name in names] == pytest.approx(of_the_report) and found[
        "P_invalid"
    ] == numbers.invalid == ""
    means = run.groupby("split")["exact_match"].mean()
    assert [found[s] for s in ("in_distribution", "longer", "farther", "nearer")] == pytest.approx(
        [means[s] for s in ("test", "longer", "farther", "nearer")]
    )


def test_an_empty_cell_is_not_kept_in_the_report_either():
    row = {"arm": "a", "encoding": "none", "seed": 0, "fit": True, "task": "t", "distance": 3}
    hole = [row | {"split": "test" if n == 4 else "longer", "length": n} for n in (4, 8, 16)]
    whole = {"exact_match": 1.0, "exact_match_low": 0.95}
    empty = {"exact_match": None, "exact_match_low": None}
    assert solved_up_to(Panel(frame([one | whole for one in hole])), "length") == 16
    assert solved_up_to(Panel(frame([one | (empty if one["length"] == 8 else whole) for one in hole])), "length") == 4


def test_a_floor_by_distance_must_name_every_distance():
    one = {"predictions": [1, 1], "references": [1, 1], "length": [4, 4], "distance": [1, 2], "train_length": (4, 4)}
    with pytest.raises(ValueError, match="chance has no value at distance 2: give one number"):
        load("posgen_extrapolation").compute(**one, train_distance=(1, 1), chance={1: 0.1})


def test_modules_that_share_a_file_hold_the_same_file():
    """Each folder is pushed alone, so each has its own copy."""
    copies = {}
    for file in HOME.glob("*/*.py"):
        copies.setdefault(file.name, set()).add(file.read_text())
    assert {name for name, texts in copies.items() if len(texts) > 1} == set() and len(
        list(HOME.glob("*/intervals.py"))
    ) == 2


def test_a_distance_without_an_answer_leaves_no_valid_p():
    ask = [(d, 4 <= d <= 8) for d in range(1, 21)]
    inputs = {"predictions": [int(right) for _, right in ask], "references": [1] * 20, "length": [64] * 20}
    trained = {"train_length": (64, 64), "train_distance": (4, 8)}
    module = load("posgen_extrapolation")
    found = module.compute(**inputs, distance=[d for d, _ in ask], **trained)
    assert found["P"] == 0 and found["P_invalid"] == ""
    found = module.compute(**inputs, distance=[d for d, _ in ask], **trained, cells=[(64, 24)])
    assert found["empty_cells"] == ["L64 d24"] and found["farther"] is None
    assert found["P_invalid"] == "4 distances were not evaluated" and found["sum_over_distances"] == 5
    found = module.compute(**inputs, distance=[d + 8 for d, _ in ask], **trained)
    assert found["P"] is None and "no distance up to the end of the trained range" in found["P_invalid"]
    found = module.compute(**inputs | {"length": [32] * 20}, distance=[d for d, _ in ask], **trained)
    assert found["P"] is None and found["P_invalid"] == "no distance was evaluated at length 64"


def test_splits_of_the_grid():
    def ask(length, distance):
        return split_of(length, distance, (4, 16), (4, 8))

    assert [ask(16, 4), ask(17, 4), ask(8, 9), ask(8, 3), ask(17, 9)] == [
        "in_distribution",
        "longer",
        "farther",
        "nearer",
        "both",
    ]
    assert ask(3, 4) == "shorter" and ask(17, 3) == "longer and nearer" and ask(17, -1) == "longer"


PROCESS = """
import sys, json, evaluate
home, cache, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
guess, cells = [[1], [1 + rank], [2]], {"length": [1] * 3, "distance": [rank] * 3}
batches = {
    "posgen_accuracy": ({"predictions": guess, "references": [[1]] * 3} | cells, {}),
    "posgen_perplexity": ({"predictions": [[0.0, 1.0 + 2 * rank]], "references": [[-100, 5]]}, {}),
    "posgen_extrapolation": (
        {"predictions": [1] * 3, "references": [1] * 3} | cells, {"train_length": (1, 1), "train_distance": (0, 0)}),
}
found = {}
for name, (batch, options) in batches.items():
    where = {"num_process": 2, "process_id": rank, "experiment_id": name, "cache_dir": cache}
    module = evaluate.load(f"{home}/{name}", **where)
    module.add_batch(**batch)
    found[name] = module.compute(**options)
print(json.dumps(found))
"""


def test_two_processes_pool_their_batches(tmp_path, private_cache):
    import os

    environment = os.environ | {"HF_MODULES_CACHE": str(tmp_path / "modules")}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(HOME), str(tmp_path / "cache"), str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        for rank in range(2)
    ]
    (first, errors), (second, _) = [one.communicate(timeout=300) for one in both]
    assert [one.returncode for one in both] == [0, 0], errors.decode()[-800:]
    found = json.loads(first)
    accuracy, extrapolation = found["posgen_accuracy"], found["posgen_extrapolation"]
    assert [row["distance"] for row in accuracy["cells"]] == [0, 1] and accuracy["exact_match"] == pytest.approx(0.5)
    assert found["posgen_perplexity"]["nats"] == pytest.approx(2)
    assert extrapolation["in_distribution"] == extrapolation["farther"] == 1
    assert set(json.loads(second).values()) == {None}
