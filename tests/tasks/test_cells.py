"""Cells, the grid of splits, and parameters written as text."""

import numpy as np
import pytest

from hf_posgen.tasks import IGNORE, Cell, build_task, generated_tasks, train_cell
from hf_posgen.tasks.core.cells import HELD_OUT, SPLITS, grid, refuse_overlap
from hf_posgen.tasks.core.parameters import numbers


def test_cells_are_ordered_and_print_short():
    assert str(Cell(48, 3)) == "L48 d3" and str(Cell(64, None)) == "L64 mixed"
    assert sorted([Cell(48, 3), Cell(16, 9), Cell(16, None), Cell(16, 3)]) == [
        Cell(16, None),
        Cell(16, 3),
        Cell(16, 9),
        Cell(48, 3),
    ]
    assert len({Cell(1, 2), Cell(1, 2)}) == 1


def test_grid_drawn_by_hand():
    """Trained lengths 10 and 20, distances 3, 4, 7; asked beyond: lengths 15, 40, distances 1, 5, 9."""
    splits = grid([10, 20], [3, 4, 7], [40, 15], [1, 5, 9])
    cells = {name: {(c.length, c.distance) for c in mine} for name, mine in splits.items()}
    assert set(splits) == set(SPLITS)
    assert cells["train"] == cells["validation"] == cells["test"] == {(n, d) for n in (10, 20) for d in (3, 4, 7)}
    assert cells["longer"] == {(40, 3), (40, 4), (40, 7)}
    assert cells["farther"] == {(20, 9)} and cells["nearer"] == {(20, 1)}
    assert cells["between"] == {(15, 3), (15, 4), (15, 7), (20, 5)}
    assert cells["both"] == {(40, 1), (40, 5), (40, 9)}
    mixed = grid([10], [3, 4], mixed=True)
    assert mixed["train"] == (Cell(10, None),) and mixed["test"] == (Cell(10, 3), Cell(10, 4))


def test_a_length_below_the_trained_ones_is_refused():
    with pytest.raises(ValueError, match="length 5 is below the trained ones .10 to 20."):
        grid([10, 20], [3], [5])


@pytest.mark.parametrize("split", HELD_OUT)
def test_overlap_is_refused(split):
    with pytest.raises(ValueError, match=f"task 'x': split '{split}' holds L10 d3, which training sees"):
        refuse_overlap("x", {split: (Cell(10, 3),)}, {Cell(10, 3)})


def test_a_cell_stands_in_one_held_out_split():
    with pytest.raises(ValueError, match="L10 d3 stands in 'longer' and in 'both'"):
        refuse_overlap("x", {"longer": (Cell(10, 3),), "both": (Cell(10, 3),)}, set())


def test_a_parameter_takes_numbers_in_any_form():
    forms = ([17, 20], (17, 20), "17,20", "17, 20")
    assert len({build_task({"name": "fixed_offset", "test_lengths": form}) for form in forms}) == 1
    assert build_task({"name": "fixed_offset", "test_lengths": 17}).test_lengths == (17,)
    with pytest.raises(ValueError, match="test_lengths is True; it must be a list of whole numbers"):
        build_task({"name": "fixed_offset", "test_lengths": True})


def test_numbers():
    assert numbers("1-3, 7,9-10") == (1, 2, 3, 7, 9, 10) and numbers("") == ()
    for text in ("1-", "a", "1.5", "-3"):
        with pytest.raises(ValueError, match="no list of whole numbers"):
            numbers(text)


@pytest.mark.parametrize("name", generated_tasks())
def test_training_mixes_lengths_unless_told_otherwise(name):
    """Who trains at one length learns that length. The streams and signals ask at every place of their one window."""
    task = build_task(name)
    lengths = {cell.length for cell in task.cells("train")}
    if len(lengths) == 1:
        cell = task.cells("train")[0]
        asked = task.sample(np.random.default_rng(0), 500, cell)[1]
        asked = np.isfinite(asked) if task.continuous else asked != IGNORE
        assert (asked.any(0)).mean() > 0.6, "each prefix is a length of its own"
    drawn = {train_cell(task, 0, step).length for step in range(200)}
    assert drawn == lengths


@pytest.mark.parametrize(
    "spec, words",
    [
        ({"name": "induction", "shorter_windows": [64]}, "shorter_windows 64: below 64"),
        ({"name": "induction", "shorter_windows": [20]}, "shorter_windows 20: .* 1 to 31 in it"),
        ({"name": "unique_copy", "shorter_windows": [80]}, "shorter_windows must be below 64"),
        ({"name": "unique_copy", "shorter_windows": [20]}, "a string of 12 and its copy fill 25 tokens"),
        ({"name": "unique_copy", "layout": "tight", "shorter_windows": [20]}, "go with layout 'padded' only"),
    ],
)
def test_shorter_windows_that_cannot_be(spec, words):
    assert build_task({"name": "induction", "shorter_windows": [48]}).windows == (48, 64)
    with pytest.raises(ValueError, match=words):
        build_task(spec)
