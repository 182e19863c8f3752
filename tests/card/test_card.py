"""The model card and the results metadata, from rows written by hand."""

import ast
import re
import tomllib
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from hf_posgen.card.facts import FILTERS
from hf_posgen.card.metadata import eval_files, model_index, summarize
from hf_posgen.card.model_card import card, render
from hf_posgen.results.definitions import DEFINITIONS
from hf_posgen.run.components import describe_component
from hf_posgen.sweep.spec import presets, read_sweep, sweep_runs
from hf_posgen.tasks import TASKS, build_task, config_spec, generated_tasks, resolve_task
from hf_posgen.tasks.dataset.published import benchmark, benchmark_file, named
from tests.helpers.card_rows import COPY, FIXED, MODEL, REPO, paste_row, row

ROOT = Path(__file__).parents[2]


# From rows to summaries


def test_the_interval_of_a_mean_comes_from_the_intervals_of_its_cells():
    (one,) = summarize([row("test", 4), row("test", 5, value=0.7, low=0.6, high=0.8)])
    score = one.scores["exact_match"]
    assert score.mean == pytest.approx(0.8) and score.worst == 0.7
    assert score.low == pytest.approx(0.8 - (0.1**2 + 0.1**2) ** 0.5 / 2)
    assert score.high == pytest.approx(0.8 + (0.05**2 + 0.1**2) ** 0.5 / 2)
    assert (one.cells, one.count, one.lengths, one.distances) == (2, 200, (4, 5), (3, 3))


def test_one_cell_keeps_its_interval_and_a_cell_without_answers_enters_no_mean():
    empty = {f"exact_match{end}": None for end in ("", "_low", "_high")}
    (one,) = summarize([row("test", 4), row("test", 5) | empty])
    assert one.scores["exact_match"].low == pytest.approx(0.8) and one.scores["exact_match"].high == pytest.approx(0.95)
    assert one.cells == 2 and "exact_match" not in summarize([row("test", 5) | empty])[0].scores


def test_first_and_rest_stand_apart_for_pastes_only():
    assert list(summarize([paste_row("test", 20)])[0].scores) == [
        "exact_match",
        "token_accuracy",
        "first_accuracy",
        "rest_accuracy",
    ]
    assert list(summarize([row("test", 4)])[0].scores) == ["exact_match"]


def test_splits_come_in_the_usual_order():
    rows = [row(split, 4) for split in ("both", "longer", "test", "validation")]
    assert [one.split for one in summarize(rows)] == ["validation", "test", "longer", "both"]


# Both formats, one source


def test_both_formats_say_the_same():
    summaries = summarize([row("test", 4), row("longer", 32, value=0.25), row("longer", 48, value=0.5)])
    results = model_index(summaries, FIXED, "lab")
    texts = eval_files(summaries, FIXED, "lab")
    entries = [parse_eval_result_entries(yaml.safe_load(text)) for text in texts.values()]
    assert all(len(one) == 1 for one in entries), "several scores of one benchmark go in separate files"
    told = {(entry.dataset_id, entry.task_id): entry.value for (entry,) in entries}
    assert told == {
        (result.dataset_type, f"{result.dataset_config}_{result.dataset_split}"): result.metric_value
        for result in results
    }
    assert told["lab/posgen-fixed-offset", "last_k3_longer"] == 0.375
    assert list(texts)[1] == ".eval_results/posgen-fixed-offset_last_k3_longer.yaml"
    assert "date" not in "".join(texts.values()), "the same rows give the same file on any day"


def test_a_named_configuration_is_recognised_and_others_get_a_digest():
    assert benchmark(COPY, "lab") == ("lab/posgen-delay-copy", "full_15_25")
    dataset, config = benchmark(FIXED | {"offset": 2})
    assert dataset == "posgen-fixed-offset" and re.fullmatch(r"custom_[0-9a-f]{8}", config)
    assert config != benchmark(FIXED | {"offset": 5})[1]


@pytest.mark.parametrize("preset", presets())
def test_every_task_that_a_preset_trains_on_is_a_published_configuration(preset):
    """Its results then name a data set's configuration that exists, and a task of that data set's `eval.yaml`."""
    for one in {str(run.task): run for run in sweep_runs(read_sweep(preset))}.values():
        task = resolve_task(one.task)
        name, config = benchmark(task, "lab")
        assert named(task) and config in TASKS[task["name"]].configs, f"{preset}, {one.panel}: name it among configs"
        splits = build_task(task).splits()
        ids = {entry["id"] for entry in yaml.safe_load(benchmark_file(name, {config: list(splits)}))["tasks"]}
        rows = [row(split, 4) for split, cells in splits.items() if cells and split != "train"]
        entries = [yaml.safe_load(text)[0] for text in eval_files(summarize(rows), task, "lab").values()]
        assert len(entries) == len(rows) and {entry["dataset"]["task_id"] for entry in entries} <= ids


def test_no_two_configurations_are_the_same_task():
    """A task's parameters lead to one name."""
    for name in generated_tasks():
        specs = [resolve_task(config_spec(name, config)) for config in TASKS[name].configs]
        assert all(one not in specs[:i] for i, one in enumerate(specs))


def test_a_task_without_a_name_refers_to_no_data_set(folder):
    texts = render(folder([row("test", 4)], FIXED | {"offset": 2}), REPO)
    data = ModelCard(texts["README.md"]).data
    assert list(texts) == ["README.md"] and data.datasets is None
    (result,) = data.eval_results
    assert result.dataset_type == "posgen-fixed-offset", "the kind of task, and no repository of anybody's"
    assert result.dataset_config.startswith("custom_")


def test_an_unfit_run_says_so_in_both_formats():
    summaries = summarize([row("test", 4, fit=False)])
    assert model_index(summaries, FIXED)[0].metric_args["fit"] is False
    assert all("did not fit" in text for text in eval_files(summaries, FIXED).values())


def test_the_benchmark_file_lists_what_results_refer_to():
    listed = yaml.safe_load(benchmark_file("posgen-fixed-offset", {"last_k3": ["train", "test", "longer"]}))
    assert [(one["id"], one["config"], one["split"]) for one in listed["tasks"]] == [
        ("last_k3_longer", "last_k3", "longer"),  # the headline first
        ("last_k3_test", "last_k3", "test"),
    ]
    assert "Headline task: last_k3_longer" in listed["description"]


# The card


def tables(text: str) -> list[list[str]]:
    return [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", text, re.M)]


CASES = {
    "fixed offset": ([row("test", 4), row("longer", 32)], FIXED, MODEL),
    "pastes": (
        [paste_row("test", 20), paste_row("farther", 40), row("test", 256, None) | paste_row("test", None)],
        COPY,
        MODEL,
    ),
    "many cells": ([row("longer", length) for length in range(17, 77)], FIXED, MODEL),
    "unfit": ([row("test", 4, fit=False)], FIXED, MODEL),
    "a cell without answers": ([row("test", 4), row("test", 5, None, None, None)], FIXED, MODEL),
    "not evaluated": ([], FIXED, MODEL),
    "per layer": (
        [row("test", 4)],
        FIXED,
        MODEL | {"position_encoding": [{"name": "rope", "base": 1e4}, {"name": "alibi", "slopes": "paper"}] * 2},
    ),
    "somebody else's parts": (
        [row("test", 4)],
        {"name": "other_task", "bos": True},
        MODEL | {"mixer": {"name": "new"}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_card_is_whole(name, folder):
    rows, task, model = CASES[name]
    text = render(folder(rows, task, model), REPO)["README.md"]
    for table in tables(text):
        assert len({line.replace(r"\|", "").count("|") for line in table}) == 1, table
    assert not re.search(r"\bNone\b|undefined|\{\{|\}\}|\n\n\n", text), "something is missing or badly filled in"
    data = ModelCard(text).data.to_dict()
    assert data["library_name"] == "transformers" and data["pipeline_tag"] == "text-generation"
    assert data["license"] == "apache-2.0" and data["tags"][0] == "hf_posgen"
    assert data.get("datasets") == ([f"lab/posgen-{task['name'].replace('_', '-')}"] if task in (FIXED, COPY) else None)
    assert ("model-index" in data) == bool(rows)
    for words in ("## Use", "## Training", "## Limits", "2607.18759", "2609.11913", "posgen train run.yaml"):
        assert words in text
    code = re.search(r"```python\n(.*?)```", text, re.S)[1]
    assert ast.parse(code) and code.count(f'from_pretrained("{REPO}"') == 2
    assert code.count("trust_remote_code=True") == code.count("trust_remote_code=False") == 1, (
        "a tokenizer runs no code"
    )


def test_the_numbers_on_the_card_are_the_rows(folder):
    text = render(folder([row("test", 4), row("longer", 32, value=0.25, low=0.2, high=0.3)]), REPO)["README.md"]
    assert "| longer | 32 | 3 | exact match | 0.250 [0.200, 0.300] | 0.250 | 0.062 | 1 | 100 |" in text
    assert "| longer | 32 | 3 | exact match | 0.250 [0.200, 0.300] | 0.062 | bag of words 0.200 | 1.000 | 100 |" in text
    assert "seed 3" in text and "acts on" in text and "| query, key |" in text and "2104.09864" in text
    assert "Head size 16. Rotary encodings with heads below 32 alias" in text
    assert "16 sequences" in re.sub(r"\s+", " ", text) and "without a BOS token" in text


def test_first_and_rest_are_on_the_card(folder):
    text = render(folder([paste_row("test", 20), paste_row("farther", 40, first=0.25)], COPY), REPO)["README.md"]
    assert "| farther | 256 | 40 | first pasted token | 0.250 [0.250, 0.250] | 0.250 | 0.062 | 1 | 100 |" in text
    assert "| farther | 256 | 40 | rest of the paste | 0.900 [0.900, 0.900] | 0.900 | 0.062 | 1 | 100 |" in text
    assert "distances 15–25" in text
    assert "| farther: first pasted token | 0.25 |" in text and "| farther: rest of the paste | 0.90 |" in text


def test_the_headline_numbers_stand_on_the_card_with_what_they_mean(folder):
    rows = [row("test", 16, low=0.95), row("longer", 17, low=0.93), row("longer", 32, low=0.91)]
    rows += [row("longer", 48, value=0.5, low=0.4), row("longer", 64, value=0.9, low=0.95)]
    text = render(folder(rows), REPO)["README.md"]
    assert "| solved up to length | 32 |" in text and "| longer: exact match | 0.80 |" in text and DEFINITIONS in text
    pastes = [paste_row("test", d) for d in range(15, 26)] + [paste_row("farther", d, first=0.1) for d in range(26, 41)]
    text = render(folder(pastes, COPY), REPO)["README.md"]
    assert "| P: first pasted token | not valid: 14 distances were not evaluated |" in text
    pastes += [paste_row("nearer", d, first=0.0) for d in range(1, 15)]
    text = render(folder(pastes, COPY), REPO)["README.md"]
    for said in (
        "| sum, d 1 to 40: first pasted token | 7.00 |",
        "| P: first pasted token | 0.27 |",
        "| P: rest of the paste | not valid: accuracy has not reached its floor at distance 40 |",
        "| P if it overshot by 5: first pasted token | 0.23 |",
    ):
        assert said in text
    assert "| P of a 2-gram baseline" not in text, "these rows know none"
    unfit = render(folder([row("test", 16, fit=False), row("longer", 17, fit=False)]), REPO)["README.md"]
    assert "Headline" not in unfit, "what did not fit has none"


def test_what_a_card_says_first(folder):
    unfit = render(folder([row("test", 4, fit=False)]), REPO)["README.md"]
    assert "**This run did not fit**" in unfit
    fit = render(folder([row("test", 4)]), REPO)["README.md"]
    assert "did not fit**" not in fit and "**Not evaluated**" not in fit
    assert "**Not evaluated**" in render(folder(), REPO)["README.md"]
    step = render(folder([row("test", 4)]), REPO, step=50)
    assert "after 50 of at most 100 steps" in step["README.md"] and list(step) == ["README.md"]
    assert 'revision="step-000050"' in step["README.md"]
    several = render(folder([row("test", 4)]), REPO, steps=[10, 20])["README.md"]
    assert '`revision="step-000010"` to `"step-000020"`' in several


def test_many_cells_are_left_to_the_rows(folder):
    assert "Every cell is in `results.jsonl`" in render(folder(CASES["many cells"][0]), REPO)["README.md"]


def test_card_writes_what_it_renders(folder):
    run = folder([row("test", 4)])
    (run / "figures").mkdir()
    (run / "figures" / "curve.png").write_bytes(b"")
    text = card(run)
    assert (run / "README.md").read_text() == text and "![figures/curve.png](figures/curve.png)" in text
    assert [path.name for path in (run / ".eval_results").iterdir()] == ["posgen-fixed-offset_last_k3_test.yaml"]
    assert card(run) == text
    with pytest.raises(ValueError, match=r"no such file: .*run.yaml"):
        card(run / "figures")


def test_every_registered_component_has_a_sentence():
    from hf_posgen.model.encoding_registry import ENCODINGS

    for name, cls in ENCODINGS.items():
        found = describe_component("position_encoding", {"name": name})
        assert found["what"].endswith(".") and found["paper"] == cls.paper
        assert not re.search(r"(?<!\\)\|", FILTERS["cell"](found["what"]))


def test_the_template_is_shipped_and_model_cards_names_the_same_file():
    shipped = files("hf_posgen.card").joinpath("model_card.md.jinja")
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["hf_posgen"]
    assert shipped.is_file() and any(fnmatch("card/model_card.md.jinja", pattern) for pattern in patterns)
    link = ROOT / "model_cards" / "model_card.md.jinja"
    assert link.is_symlink() and link.resolve() == ROOT / "src" / "hf_posgen" / "card" / "model_card.md.jinja"


def test_the_chance_beside_a_score_is_of_that_very_score(folder):
    """Of a whole paste far less than of a token; none where rows don't say; on the card as in its metadata."""
    paste = [paste_row("test", 20, exact_match_chance=1e-6), paste_row("test", 21, exact_match_chance=3e-6)]
    for rows, task, chances in (
        (paste, COPY, {"exact match": 2e-6, "token accuracy": 0.0625, "rest of the paste": 0.0625}),
        ([paste_row("test", 20)], COPY, {"exact match": None, "token accuracy": 0.0625}),
        ([row("test", 4)], FIXED, {"exact match": 0.0625}),
    ):
        text = render(folder(rows, task), REPO)["README.md"]
        results = {result.metric_name: result for result in ModelCard(text).data.eval_results}
        for score, chance in chances.items():
            assert results[score].metric_args.get("chance") == chance
            line = next(line for line in text.splitlines() if line.startswith("| test |") and f"| {score} |" in line)
            shown = "–" if chance is None else "2e-06" if chance == 2e-6 else "0.062"
            assert line.split(" | ")[6] == shown, line


def test_a_baseline_stands_beside_what_is_counted_over_the_same_tokens(folder):
    known = {"bag_of_words": 0.1, "ngram_2": 0.2, "ngram_2_rest": 0.3}
    text = render(folder([paste_row("test", 20, baselines=known)], COPY), REPO)["README.md"]
    cells = {
        line.split(" | ")[3]: line for line in text.split("Every cell</summary>")[1].splitlines() if "| test |" in line
    }
    assert "0.100" in cells["first pasted token"] and "gram" not in cells["first pasted token"]
    assert "2-gram baseline, rest 0.300" in cells["rest of the paste"] and "0.200" not in cells["rest of the paste"]
    assert "2-gram baseline 0.200" in cells["token accuracy"] and "0.1" not in cells["exact match"]


def test_a_card_shows_the_task_and_what_the_model_answers(finished_run):
    import torch

    from hf_posgen.evaluation.runs import load_run
    from hf_posgen.tasks import examples

    text = render(finished_run, REPO)["README.md"]
    lines = re.search(r"input     (.*)\nexpected  (.*)\nmodel     (.*)\n", text)
    read, expected, answered = (line.split() for line in lines.groups())
    run, task, model = load_run(finished_run, torch.device("cpu"))
    tokens, labels = (array[0] for array in examples(task, run.seed, "test", task.cells("test")[0], 0, 1))
    with torch.no_grad():
        predictions = model(torch.from_numpy(tokens)[None]).logits[0].argmax(-1).tolist()
    scored = [place for place, label in enumerate(labels) if label >= 0]
    assert scored and read == [task.vocabulary[token] for token in tokens]
    for place, label in enumerate(labels):
        answer = (task.vocabulary[label], task.vocabulary[predictions[place - 1]]) if place in scored else ("·", "·")
        assert (expected[place], answered[place]) == answer
    assert "model     " not in render(finished_run, REPO, step=5)["README.md"]


def test_a_card_without_a_model_that_opens_shows_no_example_and_says_so(folder, caplog):
    run = folder([row("test", 4)])
    for name in ("config.json", "model.safetensors"):
        (run / name).write_text("{}")
    assert "model     " not in render(run, REPO)["README.md"] and "shows no example" in caplog.text


def test_any_text_stays_in_its_place_on_the_card(folder, tmp_path):
    """A path, an arm and a figure with signs that Python, Markdown and addresses take for their own."""
    run = folder([row("test", 4, arm="a|b")])
    tree = yaml.safe_load((run / "run.yaml").read_text()) | {"arm": 'a|b <i>"'}
    (run / "run.yaml").write_text(yaml.safe_dump(tree))
    (run / "figures").mkdir()
    (run / "figures" / "by length (1).png").write_bytes(b"")
    text = render(run, 'C:\\new "x"')["README.md"]
    code = re.search(r"```python\n(.*?)```", text, re.S)[1]
    strings = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert strings.count('C:\\new "x"') == 2
    assert "(figures/by%20length%20%281%29.png)" in text and "<i>" not in text.split("```yaml")[0]
    for table in tables(text):
        assert len({line.replace(r"\|", "").count("|") for line in table}) == 1, table
