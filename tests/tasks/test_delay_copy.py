"""Study 2's stream: read by a parser that knows nothing of the generator, and its figures against known values."""

from collections import Counter

import numpy as np
import pytest

from hf_posgen.tasks import IGNORE, Cell, build_task, config_spec

from .stream_parser import read_window

PAPER = {"symbols": 128, "copied": 10, "window": 256, "d_min": 15, "d_max": 25}
STATED = {"unreachable": "scored", "cut_pastes": "scored"}
CASES = [
    ({}, None),
    ({}, 0),
    ({}, 1),
    ({}, 32),
    ({"kinds": "S"}, 6),
    ({"kinds": "CS"}, None),
    ({"kinds": "CS", "asked": "S"}, 12),
    ({"kinds": "CS", "s_min": 10, "s_max": 12}, None),
    ({"d_min": 1, "d_max": 30, "held_out": "11-19", "window": 96}, None),
    ({"distance_counts": "marks"}, 5),
    ({"filler": "whole"}, None),
    ({"filler": "whole", "kinds": "S"}, 13),
    ({"source": "fresh"}, None),
    ({"source": "fresh", "gap_blocks": 1, "copied": 12, "window": 96}, 9),
    ({**STATED}, None),
    ({"kinds": "S", **STATED}, 20),
    ({"skip": 0}, 5),
    (PAPER, None),
    (PAPER | {"kinds": "S"}, 120),
    (PAPER | STATED, 120),
    (PAPER | STATED | {"kinds": "CS", "s_min": 45, "s_max": 55}, None),
]
ids = [f"{'-'.join(f'{k}={v}' for k, v in p.items()) or 'default'}@{d}" for p, d in CASES]


def rule_of(task, distance):
    """What the parser has to know, from the parameters alone."""
    p = task.parameters
    ranges = {"C": range(p["d_min"], p["d_max"] + 1), "S": range(p["s_min"], p["s_max"] + 1)}
    drawn = {kind: set(r) - set(p["held_out"]) if distance is None else {distance} for kind, r in ranges.items()}
    fresh = p["source"] == "fresh"
    return p | {"distances": drawn, "gap_blocks": p["gap_blocks"] if not fresh else p["copied"] + 10}


@pytest.mark.parametrize("parameters, distance", CASES, ids=ids)
def test_the_stream_reads_as_described(parameters, distance):
    task = build_task({"name": "delay_copy", **parameters})
    tokens, labels = task.sample(np.random.default_rng(5), 150, Cell(task.window, distance))
    rule, seen = rule_of(task, distance), Counter()
    for row, answers in zip(tokens.tolist(), labels.tolist(), strict=True):
        for kind, d, source, _ in read_window(row, answers, rule):
            seen[kind, d] += 1
            if task.source == "fresh" and source:
                assert _in_r_blocks(row, source[-1] + 1, task, source), "a source token is a pasted one"
    kinds = task.kinds if task.asked == "all" or distance is None else task.asked
    expected = {(k, d) for k in kinds for d in ([distance] if distance is not None else rule["distances"][k])}
    assert set(seen) <= expected and len(seen) >= 0.8 * len(expected) and sum(seen.values()) > 50


def _in_r_blocks(row, end, task, source):
    """No mark stands between the first source token and the opening mark."""
    return all(row[t] <= task.symbols for t in range(source[0], end))


def test_drawing_of_the_docstring():
    task = build_task({"name": "delay_copy", "copied": 2, "d_min": 2, "d_max": 2, "window": 30, "skip": 0})
    R, C = task.control("R"), task.control("C")
    tokens = [R, 5, 9, C, R, 1, C, 5, 9, R, 3]
    assert task.oracle(tokens) == {7: 5, 8: 9}
    assert task.oracle([1, C, 5, 9, R, 4, 8, C, R, 2, C, 4, 8]) == {11: 4, 12: 8}, "the first mark closes a pair"
    selective = build_task({"name": "delay_copy", "kinds": "S", "copied": 4})
    S = selective.control("S")
    assert selective.oracle([R, 3, 6, 4, 7, S, R, 1, S, 6, 4, R]) == {9: 6, 10: 4}


@pytest.mark.parametrize("distance, share", [(15, 0.96), (25, 0.92), (60, 0.77), (120, 0.52)])
def test_reachable_share_at_the_papers_scale(distance, share):
    """With raw sources a target stands d + 12 tokens after its source and anywhere in 18..255: the share is exact."""
    raw = build_task({"name": "delay_copy", **PAPER, **STATED, "source": "raw"})
    cell = Cell(256, distance)
    exact = min(1.0, (256 - max(18, distance + 12)) / (256 - 18))
    chance = raw.chance(cell)
    assert abs((raw.ceiling(cell) - chance) / (1 - chance) - exact) < 0.01
    assert abs(exact - share) < 0.006
    stated = build_task(config_spec("delay_copy", "full_15_25"))
    assert abs(stated.ceiling(cell) - share) < 0.015, "data tokens alone reach one R further back"
    assert build_task(config_spec("delay_copy", "full_15_25_clean")).ceiling(cell) == 1.0


@pytest.mark.parametrize("distance, accuracy", [(15, 0.86), (25, 0.81), (60, 0.67), (120, 0.44)])
def test_ngram_baseline_at_the_papers_scale(distance, accuracy):
    """With raw sources, as the figures were measured, it reads all tokens; else those that can be pasted, and is as strong:
    the R between data tokens don't stand in its way, nor odd tokens where only even ones are pasted."""
    cell = Cell(256, distance)
    raw = build_task(config_spec("delay_copy", "full_15_25", source="raw")).baselines(cell)
    data = build_task(config_spec("delay_copy", "full_15_25")).baselines(cell)
    assert abs(raw["ngram_2"] - accuracy) < 0.025
    assert raw["ngram_1"] < raw["ngram_2"]
    assert abs(data["ngram_2"] - accuracy) < 0.025
    selective = build_task(config_spec("delay_copy", "selective_15_25")).baselines(cell)
    assert abs(selective["ngram_2"] - {15: 0.76, 25: 0.73, 60: 0.58, 120: 0.38}[distance]) < 0.025
    assert data["bag_of_words"] < 0.05


def test_raw_sources_paste_control_tokens():
    """About one in ten pasted tokens of C, more of S, is a control token when a source is whatever stood before."""
    for kinds, low, high in (("C", 0.07, 0.13), ("S", 0.14, 0.32)):
        task = build_task({"name": "delay_copy", **PAPER, **STATED, "source": "raw", "kinds": kinds})
        _, labels = task.sample(np.random.default_rng(0), 400, Cell(256, 20))
        assert low < (labels[labels != IGNORE] >= 128).mean() < high


def test_windows_are_cut_at_random_places():
    """Pasted tokens stand anywhere in the window, equally often."""
    task = build_task({"name": "delay_copy", "skip": 0, **STATED})
    _, labels = task.sample(np.random.default_rng(0), 20000, Cell(64, 6))
    share = (labels != IGNORE).mean(0)
    assert np.abs(share / share.mean() - 1).max() < 0.06


def test_lengths_and_values_have_their_distributions():
    from scipy.stats import binom, chisquare

    task = build_task(
        {"name": "delay_copy", "window": 400, "gap_blocks": 1, "filler": "whole", "even_source": "as_drawn"}
    )
    tokens, _ = task.sample(np.random.default_rng(0), 300, Cell(400, None))
    R, C, blocks, distances, values = task.control("R"), task.control("C"), Counter(), Counter(), Counter()
    for row in tokens.tolist():
        marks = [t for t, token in enumerate(row) if token == C]
        first = 0 if marks[0] + 1 < 400 and row[marks[0] + 1] == R else 1
        for opened, closed in zip(marks[first::2], marks[first + 1 :: 2], strict=False):
            distances[closed - opened - 1] += 1
            gap = row.index(R, closed) if R in row[closed:] else None
            after = next((m for m in marks if m > closed), None)
            if gap is not None and after is not None:
                blocks[after - gap - 1] += 1
            values.update(t for t in row[opened + 1 : closed] if t < task.symbols)
    assert chisquare([distances[d] for d in range(4, 9)]).pvalue > 1e-3
    assert chisquare([values[v] for v in range(32)]).pvalue > 1e-3
    total, p = sum(blocks.values()), binom.pmf(np.arange(10), 9, 2 / 3)
    seen = np.array([blocks[n] for n in range(10)])
    assert np.abs(seen[3:] / total - p[3:]).max() < 0.02 and seen[:3].sum() / total < 0.02


def test_selective_copies_only_even_values():
    task = build_task({"name": "delay_copy", "kinds": "S"})
    _, labels = task.sample(np.random.default_rng(0), 300, Cell(64, 6))
    assert (labels[labels != IGNORE] % 2 == 0).all()
    assert task.chance(Cell(64, 6)) == 1 / 16


def test_mixtures_ask_for_each_kind_apart():
    task = build_task(config_spec("delay_copy", "mixed_15_25_45_55_selective"))
    C, S = task.control("C"), task.control("S")
    tokens, _ = task.sample(np.random.default_rng(0), 50, task.cells("test")[0])
    assert {cell.distance for cell in task.cells("test")} == set(range(45, 56))
    assert (tokens == S).any() and not (tokens == C).any()
    mixed, _ = task.sample(np.random.default_rng(0), 50, task.cells("train")[0])
    assert (mixed == S).any() and (mixed == C).any()


@pytest.mark.parametrize("kinds", ["C", "S"])
def test_raw_oracle_reads_almost_everything(kinds):
    """A pasted mark can't be told from a real one at the window's start; elsewhere the oracle is right."""
    task = build_task({"name": "delay_copy", "source": "raw", "kinds": kinds})
    tokens, labels = task.sample(np.random.default_rng(0), 200, Cell(64, 6))
    right = [
        task.oracle(row).get(place) == label
        for row, answers in zip(tokens.tolist(), labels.tolist(), strict=True)
        for place, label in enumerate(answers)
        if label != IGNORE
    ]
    assert np.mean(right) > 0.95


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"d_max": 90}, ["window of 64", "delay of 90"]),
        ({"kinds": "X"}, ["'X'", "C, S, CS"]),
        ({"kinds": "C", "asked": "S"}, ["asked", "'S'"]),
        ({"test_distances": [8, 9]}, ["L64 d8", "training sees"]),
        ({"test_windows": [64]}, ["L64", "training sees"]),
        ({"test_windows": [32]}, ["length 32", "below"]),
        ({"held_out": [8]}, ["held_out", "inside 4..8"]),
        ({"d_min": 9}, ["d_min 9", "d_max 8"]),
        ({"d_min": 0, "distance_counts": "marks"}, ["d_min 0", "1 <="]),
        ({"s_min": 3}, ["s_min and s_max"]),
        ({"block_probability": 0.0}, ["block_probability", "0.0"]),
        ({"gap_blocks": 0}, ["gap_blocks", "0"]),
        ({"test_distances": "9-x"}, ["9-x"]),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ValueError) as error:
        build_task({"name": "delay_copy", **parameters})
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("kind", ["label", "paste", "control", "dropped"])
@pytest.mark.parametrize("parameters", [{}, {"kinds": "S"}, STATED])
def test_the_parser_notices(parameters, kind):
    """The parser is no rubber stamp: one wrong token or label in a window, and neither reading holds."""
    task, rng = build_task({"name": "delay_copy", **parameters}), np.random.default_rng(3)
    tokens, labels = task.sample(rng, 60, Cell(64, 6))
    for row, answers in zip(tokens.tolist(), labels.tolist(), strict=True):
        scored = [place for place, label in enumerate(answers) if label != IGNORE]
        if not scored:
            continue
        place = scored[rng.integers(len(scored))]
        if kind == "label":
            answers[place] = IGNORE
        elif kind == "paste":
            row[place] = answers[place] = (row[place] + 2) % 32
        elif kind == "control":
            row[place] = task.control("R")
        else:
            row.append(row.pop(place)), answers.append(answers.pop(place))
        with pytest.raises(AssertionError, match="neither reading holds"):
            read_window(row, answers, rule_of(task, 6))
