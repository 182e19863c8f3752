"""Numbers that compare arms are over the same cells of the same task, whatever was evaluated of each."""

import math

import numpy as np
import pytest

from hf_posgen.report.headline_tables import contrast_notes, contrast_table, headline_table
from hf_posgen.report.markdown import report
from hf_posgen.report.tables import axis_table, split_table, summary_tables
from hf_posgen.results.contrasts import contrasts, untested
from hf_posgen.results.frame import frame, panels
from hf_posgen.results.headlines import headlines
from hf_posgen.results.panel import Panel
from tests.helpers.synthetic_rows import study1, study2, text


def panel_of(rows) -> Panel:
    return Panel(frame(rows))


def notes_of(panel, pairs=None):
    return contrast_notes(panel, contrasts(panel, pairs), pairs)


def twice(rows, keep, names=("all", "some")):
    """The rows of one arm under two names, of the second only those that `keep` accepts."""
    first, second = names
    twin = [row | {"arm": second, "run": f"{row['run']}-{second}"} for row in rows if keep(row)]
    return [row | {"arm": first} for row in rows] + twin


@pytest.mark.parametrize(
    ("rows", "keep", "lost"),
    [
        (study1(6, arms=("rope",), unfit=()), lambda row: row["length"] <= 48, "longer L128 d3"),
        (study2(6, arms=("rope",)), lambda row: row["distance"] <= 16, "farther L64 d17"),
        (text(6, arms=("rope",)), lambda row: row["length"] <= 256, "longer L1024"),
        (study2(6, arms=("rope",)), lambda row: row["distance"] <= 16 or row["seed"], "farther L64 d17"),
    ],
    ids=["lengths", "distances", "perplexity", "one seed lacks them"],
)
def test_the_same_weights_evaluated_on_other_cells_are_no_different(rows, keep, lost):
    panel = panel_of(twice(rows, keep))
    for contrast in contrasts(panel):
        assert contrast.difference == pytest.approx(0, abs=1e-12) and contrast.holm_p == 1
        assert "higher" not in contrast.verdict and "lower" not in contrast.verdict
    first, second = headlines(panel)
    assert {key: mean.values for key, mean in first.means.items()} == {k: m.values for k, m in second.means.items()}
    assert first.solved == second.solved and first.far == second.far and first.best == second.best
    notes = " ".join(notes_of(panel))
    assert lost in notes and lost in panel.shared_values(panel.metrics[0]).sentence


def test_what_is_left_out_is_named_in_the_report(tmp_path):
    rows = twice(study1(6, arms=("rope",), unfit=()), lambda row: row["length"] <= 48)
    written = report(rows, tmp_path).markdown.read_text()
    assert "left out: longer L128 d3, longer L512 d3, longer L1024 d3 (only in all)" in written
    assert "is over the 3 cells that both have" in written
    same = report(twice(study1(6, arms=("rope",), unfit=()), lambda row: True), tmp_path / "same").markdown.read_text()
    assert "left out:" not in same


def test_points_of_a_curve_average_the_same_cells():
    rows = twice(study2(3, arms=("rope",)), lambda row: row["length"] == 64 or row["distance"] in (4, 8))
    table = axis_table(panel_of(rows), "length", "rest_accuracy")
    (line,) = [line for line in table.lines if line[0] == "128"]
    assert line[1] == line[2]


def test_seeds_that_lack_a_point_are_counted():
    rows = [row for row in study2(4, arms=("rope",)) if row["seed"] or row["distance"] != 30]
    lines = {line[0]: line[1] for line in axis_table(panel_of(rows), "distance", "first_accuracy").lines}
    assert lines["30"].endswith("], 3 seeds") and lines["29"].endswith("]")


def test_splits_of_arms_with_nothing_unseen_compare_the_same_cells():
    rows = [row for row in study1(3, arms=("rope",), unfit=()) if row["split"] in ("test", "validation")]
    rows = [row | {"exact_match": row["length"] / 20} for row in rows]
    lines = split_table(panel_of(twice(rows, lambda row: row["length"] <= 8))).lines
    means = {(line[0], line[2]): line[3] for line in lines}
    assert means["all", "test"] == means["some", "test"]
    assert "left out" in summary_tables(twice(rows, lambda row: row["length"] <= 8))


def test_arms_that_share_no_cell_have_no_mean_in_common():
    rows = study1(6, arms=("rope", "learned"), unfit=())
    rows = [row for row in rows if row["split"] != "longer" or (row["length"] > 50) == (row["arm"] == "rope")]
    panel = panel_of(rows)
    assert contrasts(panel) == [] and [pair.why for pair in untested(panel, [])] == [
        "both have no unseen cell in common"
    ]
    assert all(line[2] == "-" for line in headline_table(panel, headlines(panel)).lines)


def test_an_arm_that_was_evaluated_in_range_alone_takes_nothing_from_the_others():
    rows = study1(3, arms=("rope", "sinusoidal"), unfit=())
    rest = [row for row in rows if row["arm"] == "rope" or row["split"] != "longer"]
    (rope,) = [arm for arm in headlines(panel_of(rest)) if arm.arm == "rope"]
    (alone,) = headlines(panel_of([row for row in rows if row["arm"] == "rope"]))
    assert rope.means == alone.means and rope.solved == alone.solved


def test_tasks_with_other_parameters_are_other_panels(tmp_path):
    """Fixed offset over 16 symbols with one seed, over 64 with the other: no arm of two seeds, and two chance levels."""
    rows = [row | {"task_digest": "aaaa1111" if row["seed"] == 0 else "bbbb2222"} for row in study1(2)]
    rows = [row | {"chance": 1 / 64} if row["seed"] else row for row in rows]
    made = panels(frame(rows))
    assert [panel.fits["rope"] for panel in made] == [(1, 1), (1, 1)]
    assert [set(panel.table["chance"]) for panel in made] == [{1 / 16}, {1 / 64}]
    assert len({panel.slug for panel in made}) == len({panel.title for panel in made}) == 2
    assert all(digest in made[i].title for i, digest in enumerate(("aaaa1111", "bbbb2222")))
    written = report(rows, tmp_path)
    assert len(written.figures) == len(set(written.figures)), "no figure overwrites another"
    older = [row | {"task_digest": None} if row["seed"] else row for row in rows]
    assert [panel.title for panel in panels(frame(older))][0].endswith("parameters unknown")
    twins = [row | {"task_digest": "cccc3333"} for row in study1(1)] + [row | {"task_digest": "d"} for row in study1(1)]
    assert len(panels(frame(twins))) == 2, "two tasks, not two runs of one arm and seed"


@pytest.mark.parametrize("pairs", [None, [("none", "rope")], [("rope", "none")]])
def test_a_difference_that_cannot_be_tested_says_why(pairs, tmp_path):
    rows = study2(6, arms=("none", "rope"), unfit=("none",))
    assert contrast_table(contrasts(panel_of(rows), pairs)) is None
    assert (
        "none did not fit" in report(rows, tmp_path, contrasts=pairs).markdown.read_text().split("### Differences")[1]
    )
    apart = [row | {"fit": (row["arm"] == "none") == (row["seed"] < 3)} for row in study2(6, arms=("none", "rope"))]
    assert "no seed where both fit" in notes_of(panel_of(apart), pairs)[0]
    inside = [row for row in study2(6, arms=("none", "rope")) if row["split"] in ("test", "validation")]
    assert "nothing was evaluated beyond" in notes_of(panel_of(inside), pairs)[0]
    both = study2(6, arms=("none", "rope"))
    assert notes_of(panel_of(both), pairs) == []


def test_all_seeds_enter_a_contrast():
    """Seeds 0 to 19 differ by .1, five more by -.4: the true difference is 0."""
    rows = []
    for seed in range(25):
        for arm, value in (("a", 0.5 + (0.1 if seed < 20 else -0.4)), ("b", 0.5)):
            row = {
                "run": f"{arm}{seed}",
                "arm": arm,
                "encoding": arm,
                "seed": seed,
                "fit": True,
                "task": "fixed_offset",
            }
            row |= {"distance": 3, "train_length": 16, "train_distance": [3, 3]}
            rows += [row | {"split": "test", "length": 16, "exact_match": 1.0}]
            rows += [row | {"split": "longer", "length": 32, "exact_match": value}]
    (found,) = contrasts(panel_of(rows))
    assert found.pairs == 25 and found.difference == pytest.approx(0, abs=1e-12)
    assert found.holm_p == 1 and found.verdict == "no significant difference"


def test_unequal_grids_are_no_worse_than_equal_ones():
    """Random grids: whatever each of three arms lacks, the means are those over the intersection."""
    rng = np.random.default_rng(0)
    rows = study2(3)
    lacks = {arm: set(rng.choice(np.arange(9, 33), 8, replace=False).tolist()) for arm in ("none", "rope", "alibi")}
    ragged = [row for row in rows if row["distance"] not in lacks[row["arm"]]]
    rest = [row for row in rows if not any(row["distance"] in gone for gone in lacks.values())]
    for one, other in zip(headlines(panel_of(ragged)), headlines(panel_of(rest)), strict=True):
        assert one.means == other.means and one.solved == other.solved
        assert all(math.isclose(one.far[key].total.mean, other.far[key].total.mean) for key in one.far)
