"""A parser of the stream written by hand, knowing nothing of the generator, reads what it wrote."""

import numpy as np
import pytest

from hf_posgen.tasks import IGNORE, Cell, build_task

CASES = [
    ({"kinds": "C"}, 5),
    ({"kinds": "C"}, 0),
    ({"kinds": "S"}, 8),
    ({"kinds": "CS"}, None),
    ({"kinds": "C", "copied": 10, "window": 256, "symbols": 128, "d_min": 15, "d_max": 25}, 25),
]


def parse(names, copied):
    """[(kind, first mark, second mark, paste places)] of one window; raises AssertionError on a grammar error."""
    pairs, place, n = [], 0, len(names)
    in_r = None  # unknown until the first control token: the window is cut anywhere
    while place < n:
        if names[place] == "R":
            in_r = True
        elif names[place] in "CS":
            kind, first = names[place], place
            place += 1
            assert place >= n or names[place] in ("R", "C", "S"), "a block starts with its control token"
            while place < n and names[place] not in ("C", "S"):
                place += 1
            if place >= n:
                break
            assert names[place] == kind, "pairs match, and only R blocks stand between"
            second = place
            paste = []
            while place + 1 < n and names[place + 1] not in ("R", "C", "S"):
                place += 1
                paste.append(place)
            pairs.append((kind, first, second, paste))
            in_r = False
        else:
            assert in_r is not False or not pairs, "data stands in R blocks or pastes"
        place += 1
    return pairs


@pytest.mark.parametrize("parameters, distance", CASES)
def test_the_stream_obeys_its_grammar(parameters, distance):
    task = build_task({"name": "delay_copy", **parameters})
    tokens, labels = task.sample(np.random.default_rng(5), 200, Cell(task.window, distance))
    pairs_seen = 0
    for row, answers in zip(tokens, labels, strict=True):
        names = [str(t) if t < task.symbols else task.vocabulary[t].strip("[]") for t in row]
        # The window may begin inside a pair: drop what stands before the first mark whose partner is known.
        marks = [i for i, name in enumerate(names) if name in ("C", "S")]
        readings = []
        for start in [0] + [m + 1 for m in marks[:1]]:
            try:
                readings.append((start, parse(names[start:], task.copied)))
            except AssertionError:
                continue
        assert readings, "no reading of the window obeys the grammar"
        ok = [r for r in readings if _explains(r, row, answers, names, task, distance)]
        assert ok, "no reading explains the labels"
        pairs_seen += len(ok[0][1])
    assert pairs_seen > 100


def _explains(reading, row, answers, names, task, distance):
    start, pairs = reading
    scored = set(np.flatnonzero(answers != IGNORE))
    for kind, first, second, paste in pairs:
        first, second, paste = first + start, second + start, [p + start for p in paste]
        d = second - first - 1
        if distance is not None and d != distance:
            return False
        if distance is None and not task.d_min <= d <= task.d_max:
            return False
        data = [p for p in range(first) if row[p] < task.symbols][-task.copied :]
        if len(data) < task.copied:
            scored -= set(paste)
            continue
        expected = [row[p] for p in data if kind == "C" or row[p] % 2 == 0]
        if [row[p] for p in paste] != expected[: len(paste)]:
            return False
        if paste and paste[0] >= task.skip:
            if any(answers[p] != row[p] for p in paste):
                return False
        elif any(answers[p] != IGNORE for p in paste):
            return False
        scored -= set(paste)
    return not {p for p in scored if p >= (pairs[0][1] + start if pairs else len(row))}


def test_selective_copies_only_even_values():
    task = build_task({"name": "delay_copy", "kinds": "S"})
    tokens, labels = task.sample(np.random.default_rng(0), 300, Cell(64, 6))
    assert (labels[labels != IGNORE] % 2 == 0).all()


def test_reachable_share_at_the_papers_scale():
    """PAPERS' stream at T = 256: about .96, .92, .77 and .52 of the targets have their source in the window."""
    task = build_task({"name": "delay_copy", "copied": 10, "window": 256, "symbols": 128, "unreachable": "scored"})
    for distance, share in ((15, 0.96), (25, 0.92), (60, 0.77), (120, 0.52)):
        assert abs(task.ceiling(Cell(256, distance)) - share) < 0.03
