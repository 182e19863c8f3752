"""Solved sequences before the asked one."""

import json

import numpy as np
import pytest

from hf_posgen.cli.dispatch import main
from hf_posgen.evaluation.few_shot import FewShot
from hf_posgen.evaluation.foreign import example_prompt, prompted_task
from hf_posgen.evaluation.measuring import Measurement
from hf_posgen.evaluation.symbols import map_symbols
from hf_posgen.evaluation.targets import run_evaluation
from hf_posgen.tasks import TASKS, Cell, build_task, examples
from tests.helpers import tiny_models as tiny

STREAM = {"name": "delay_copy", "window": 48, "test_distances": [9, 12], "test_windows": [64]}
SPECS = ["fixed_offset", {"name": "cued_delay", "answer": "cue"}, {"name": "unique_copy"}, STREAM, "induction"]


def lines(task, tokens):
    """Each line of a sequence, in the task's own form."""
    ask, after = task.control("ANSWER"), task.control("NEXT")
    out = [[]]
    for token in tokens.tolist():
        if token == after:
            out.append([])
        elif token != ask:
            out[-1].append(token)
    return out


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_every_line_is_a_sequence_of_the_task_and_only_the_last_is_asked(spec):
    inner = build_task(spec)
    task = FewShot(task=inner, shots=3)
    cell = (inner.splits()["longer"] or inner.splits()["farther"])[0]
    tokens, labels = examples(task, 0, "longer", cell, 0, 6)
    assert tokens.shape == labels.shape == (6, cell.length + task.slots())
    for row, asked in zip(tokens, labels, strict=True):
        *shown, last = lines(task, row)
        assert len(shown) == 3
        for line, one in zip(shown, task.shown_cells(), strict=True):
            assert len(line) == one.length + inner.slots()
            assert all(line[place] == answer for place, answer in inner.oracle(line).items())
        answers = inner.oracle(last)
        scored = np.flatnonzero(asked != -100)
        assert len(scored) and (asked[scored] == row[scored]).all()
        start = len(row) - len(last)
        assert scored[0] >= start, "nothing of the examples is scored"
        assert {place: answer for place, answer in answers.items() if asked[start + place] != -100} == {
            int(place) - start: int(asked[place]) for place in scored
        }


def test_what_a_prompt_looks_like():
    task = FewShot(task=build_task({"name": "fixed_offset", "bos": True}), shots=2)
    assert task.shown_cells() == [Cell(4, 3), Cell(16, 3)], "from the first trained cell to the last"
    tokens, labels = examples(task, 0, "test", Cell(5, 3), 0, 1)
    words = [task.vocabulary[token] for token in tokens[0]]
    assert [i for i, word in enumerate(words) if word == "[ANSWER]"] == [4, 23, 31]
    assert [i for i, word in enumerate(words) if word == "[NEXT]"] == [6, 25] and "[BOS]" not in words
    assert words[5] == words[0] and words[24] == words[7 + 12] and words[32] == words[26 + 1]
    assert (labels[0, :-1] == -100).all() and labels[0, -1] == tokens[0, -1]


def test_examples_are_the_same_whoever_asks_and_differ_between_sequences():
    task = FewShot(task=build_task("fixed_offset"), shots=2)
    tokens, _ = examples(task, 0, "test", Cell(8, 3), 0, 20)
    again, _ = examples(FewShot(task=build_task("fixed_offset"), shots=2), 0, "test", Cell(8, 3), 10, 12)
    assert (tokens[10:12] == again).all() and len(np.unique(tokens[:, :6], axis=0)) == 20


def test_the_rest_is_the_tasks():
    inner, cell = build_task(STREAM), Cell(48, 5)
    task = FewShot(task=inner, shots=1)
    assert (task.name, task.paste, task.splits()) == (inner.name, True, inner.splits())
    assert (task.chance(cell), task.ceiling(cell)) == (inner.chance(cell), inner.ceiling(cell))
    assert task.baselines(cell) == inner.baselines(cell) and task.trained_cells() == inner.trained_cells()


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(ValueError, match="answers don't stand in the sequence"):
        FewShot(task=build_task({"name": "fixed_offset", "query": "every"}), shots=1)
    with pytest.raises(ValueError, match="solved examples have no positions: use --prompt symbols"):
        FewShot(task=build_task({"name": "unique_copy", "positions": "coupled"}), shots=1)
    with pytest.raises(ValueError, match="shots is 0; it must be at least 1"):
        FewShot(task=build_task("fixed_offset"), shots=0)


TEXTS = [name for name, cls in TASKS.items() if cls.generated and not cls.continuous]


@pytest.mark.parametrize("kind", ["byte-level", "metaspace"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_prompt_reads_as_a_text_of_letters_by_default(name, kind):
    """Every symbol of data is a letter, every other token a mark or a word; the tokenizer reads the text so too."""
    tokenizer = tiny.TOKENIZERS[kind]()
    task = prompted_task(name, "few-shot", 2)
    symbols = map_symbols("m", tokenizer, len(tokenizer), task)
    texts = [tokenizer.decode([token]).strip() for token in symbols.ids[: task.data_symbols]]
    assert all(len(text) == 1 and text.isalpha() for text in texts)
    example = example_prompt(Measurement(None, task, 0, 1, 1000), symbols, tokenizer)
    assert example["prompt"].count("\n") == 2 and "[" not in example["prompt"] and example["answer"].strip()
    if kind == "byte-level":  # the other writes a newline as a byte that it doesn't read
        assert example["reads_back"]


@pytest.mark.parametrize("name", ["unique_copy", "repeat_copy", "stride_copy"])
def test_what_is_named_wins_over_the_layout_of_prompts(name):
    inner = prompted_task(name, "few-shot", 2).task
    assert inner.layout == "tight" and inner.symbols <= 26
    assert prompted_task({"name": name, "layout": "padded"}, "few-shot", 2).task.layout == "padded"
    assert prompted_task({"name": name, "symbols": 30}, "few-shot", 2).task.symbols == 30
    assert prompted_task(name, "symbols", 2) == build_task(name), "a model trained on the task reads it as it is"
    config = next(iter(TASKS[name].configs))
    assert prompted_task({"name": name, "config": config}, "few-shot", 2).task == build_task(
        {"name": name, "config": config}
    )


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    tokenizer = tiny.byte_level_bpe()
    return tiny.saved(tiny.llama(len(tokenizer), positions=512), tmp_path_factory.mktemp("models") / "llama", tokenizer)


def test_one_whole_prompt_is_printed_and_kept(llama, tmp_path, capsys):
    """As README shows it."""
    out = tmp_path / "out"
    main(["evaluate", str(llama), "--task", "unique_copy", "--prompt", "few-shot", "--count", "4", "-o", str(out)])
    printed = capsys.readouterr().out
    example = json.loads((out / "evaluation.json").read_text())["example"]
    *shown, last = example["prompt"].splitlines()
    assert len(shown) == 4 and all(line.split(":")[0].split()[-4:] == line.split(":")[1].split()[-4:] for line in shown)
    assert last.split() == [*example["answer"].split()[:-1], example["answer"].split()[-1] + ":"]
    for line in example["prompt"].splitlines():
        assert f"  | {line}\n" in printed
    assert f"its answer: {example['answer']!r}" in printed
    assert "Not trained on the task: 'trained' below means shown in the prompt" in printed


def test_draws_of_data_are_no_seeds(llama):
    options = {"task": "unique_copy", "prompt": "few-shot", "count": 4, "splits": ["test"]}
    draws = [run_evaluation(str(llama), data_seed=seed, **options)[0] for seed in (0, 1)]
    assert {row["seed"] for rows in draws for row in rows} == {0}
    assert [{row["data_seed"] for row in rows} for rows in draws] == [{0}, {1}]
    trained, *_ = run_evaluation(str(llama), training_seed=3, **options)
    assert {(row["seed"], row["data_seed"]) for row in trained} == {(3, 0)}
