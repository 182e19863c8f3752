"""Reports from rows that were made up by formula."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hf_posgen.cli.dispatch import main
from hf_posgen.common.files import write_rows
from hf_posgen.report import curves as report_figures
from hf_posgen.report import maps as report_maps
from hf_posgen.report import two_by_two as report_two_by_two
from hf_posgen.report.captions import facts
from hf_posgen.report.headline_tables import all_seeds_sentence, contrast_table, far_table, headline_table
from hf_posgen.report.markdown import collect_rows, declared_contrasts, report, summary_tables
from hf_posgen.report.style import STYLES, styles
from hf_posgen.report.tables import axis_table, fit_table, format_mean
from hf_posgen.results.aggregate import over_seeds
from hf_posgen.results.contrasts import contrasts
from hf_posgen.results.definitions import DEFINITIONS
from hf_posgen.results.frame import frame, panels
from hf_posgen.results.headlines import far, headlines, solved_up_to
from hf_posgen.results.order import in_order
from hf_posgen.results.panel import Panel
from hf_posgen.results.statistics import t_interval
from tests.helpers.synthetic_rows import study1, study2
from tests.helpers.synthetic_rows import text as synthetic_text


def panel_of(rows) -> Panel:
    return Panel(frame(rows))


def headline_of(rows):
    panel = panel_of(rows)
    return headline_table(panel, headlines(panel))


def far_of(rows):
    panel = panel_of(rows)
    return far_table(panel, headlines(panel))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    return report(study1() + study2(4, unfit=(("none", 1),)), out, title="Made-up numbers"), out


def test_report_writes_what_it_says(written):
    paths, out = written
    assert paths.markdown == out / "report.md"
    names = {path.name for path in paths.figures}
    assert names >= {
        "overview.png",
        "study1_length.png",
        "study1_heat.png",
        "study2_distance.png",
        "study2_heat.png",
        "study2_two_by_two.png",
    }
    for path in paths.figures:
        assert path.read_bytes().startswith(b"\x89PNG") and path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        assert f"figures/{path.name}" in paths.markdown.read_text()


def test_report_tells_fit_size_anchor_and_definitions(written):
    text = written[0].markdown.read_text()
    assert text.startswith("# Made-up numbers")
    for said in (
        "did not fit",
        "0 of 2",
        "3 of 4",
        "203,000",
        "no anchor token",
        "an anchor token",
        "Solved up to",
        "P means nothing",
    ):
        assert said in text


def test_reporting_imports_no_torch():
    code = "import sys; sys.argv = ['posgen']; import hf_posgen.report.markdown; "
    code += "import hf_posgen.report.figures; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout.strip() == b"False"


def test_rows_that_say_too_little_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        summary_tables([])
    with pytest.raises(ValueError, match="lack encoding, seed"):
        summary_tables([{"arm": "a"}])


def test_two_runs_of_one_arm_and_seed_are_no_two_seeds(tmp_path):
    rows = study2(3, arms=("none",))
    longer = [row | {"run": row["run"] + "-longer", "step": 3300} for row in rows]
    with pytest.raises(ValueError, match="'none' has two runs of seed 0: run study2-none-seed0, step 1000; and run "):
        report(rows + longer, tmp_path / "report")
    assert not (tmp_path / "report").exists(), "nothing is written"
    for rest in (rows + longer, rows + [row | {"revision": "step-500"} for row in rows]):
        with pytest.raises(ValueError, match="name one of them apart .* posgen evaluate RUN --arm NAME"):
            summary_tables(rest)
    apart = panel_of(rows + [row | {"arm": "none, longer"} for row in longer])
    assert apart.fits == {"none": (3, 3), "none, longer": (3, 3)}
    assert len(frame(rows + [row | {"kind": "selective"} for row in longer])) == 2 * len(rows), "another question"
    assert len(frame(rows + rows)) == 2 * len(rows), "a run and its sweep"


def test_least_rows_are_enough(tmp_path):
    keep = ("arm", "encoding", "seed", "split", "length", "exact_match", "fit", "task")
    rows = [{name: row[name] for name in keep} for row in study1(1)]
    assert (report(rows, tmp_path).markdown).is_file()
    assert "rope" in summary_tables(rows)


def test_only_trained_cells_makes_a_table_of_fits(tmp_path):
    rows = [row for row in study1(4, unfit=("none", ("alibi", 1))) if row["split"] == "test"]
    text = summary_tables(rows)
    assert "Study 1, fixed offset: nothing was evaluated beyond the trained range" in text and "1 of 1" not in text
    lines = {line.split()[0]: line for line in text.split("\n\n")[0].splitlines()[1:]}
    assert "exact match" in lines["arm"] and lines["rope"].split()[1:] == [
        "4",
        "of",
        "4",
        "test",
        "1.00",
        "[1.00,",
        "1.00]",
        "0.062",
    ]
    assert "3 of 4" in lines["alibi"] and "1.00 [1.00, 1.00]" in lines["alibi"]
    assert "did not fit" in text and lines["none"].split()[1] == "*"
    made = report(rows, tmp_path).markdown.read_text()
    assert "### By split" in made and re.search(r"\| rope +\| 4 of 4 +\| test +\| 1\.00 \[1\.00, 1\.00\]", made)


def test_a_panel_without_anything_unseen_is_shown_beside_one_that_has():
    text = summary_tables(study1(1) + [row for row in study2(1) if row["split"] == "test"])
    assert "by length" in text and "delay copy: nothing was evaluated beyond the trained range" in text
    assert "first pasted token" in text


def test_means_of_perplexities_are_no_shares():
    text = summary_tables([row for row in synthetic_text() if row["split"] == "test"])
    lines = [line for line in text.splitlines() if line.strip().startswith("rope") and "test" in line]
    mean, low, high = map(float, re.findall(r"(\d+\.\d+)", lines[0])[:3])
    assert 1 < low < mean < high, lines


def test_collect_rows_counts_a_sweep_and_its_runs_once(tmp_path):
    rows = study1(1)
    write_rows(tmp_path / "sweep" / "results.jsonl", rows)
    write_rows(tmp_path / "run" / "results.jsonl", [row for row in rows if row["arm"] == "rope"])
    assert len(collect_rows([tmp_path / "sweep", tmp_path / "run"])) == len(rows)
    with pytest.raises(ValueError, match="no such folder: .*nothing"):
        collect_rows([tmp_path / "run", tmp_path / "nothing"])
    (tmp_path / "unfinished").mkdir()
    with pytest.raises(ValueError, match="unfinished holds no results.jsonl"):
        collect_rows([tmp_path / "unfinished"])
    with pytest.warns(UserWarning, match="unfinished holds no results.jsonl with rows and is left out"):
        assert len(collect_rows([tmp_path / "unfinished", tmp_path / "sweep"])) == len(rows)


def test_panels_keep_studies_and_tasks_apart():
    rows = [row | {"panel": ""} for row in study1(1)] + [row | {"panel": ""} for row in study2(1)]
    assert [panel.slug for panel in panels(frame(rows))] == ["delay-copy", "fixed-offset"]
    assert [panel.title for panel in panels(frame(study1(1)))] == ["Study 1, fixed offset"]


def test_full_and_selective_copies_are_never_averaged():
    rows = [row | {"kind": kind} for kind in ("full", "selective") for row in study2(1)]
    made = panels(frame(rows))
    assert [panel.slug for panel in made] == ["study2-full", "study2-selective"]
    assert [panel.title for panel in made] == ["Study 2, delay copy, full", "Study 2, delay copy, selective"]
    (own,) = panels(frame([row | {"panel": "selective"} for row in rows if row["kind"] == "selective"]))
    assert (own.slug, own.title) == ("selective", "Selective, delay copy")


def test_each_axis_holds_the_other_as_trained():
    panel = panel_of(study2(1))
    assert panel.axes == ["length", "distance"] and panel_of(study1(1)).axes == ["length"]
    assert set(panel.along("distance")["length"]) == {64}
    assert set(panel.along("length")["distance"]) == {4, 5, 6, 7, 8}
    assert "validation" not in set(panel.along("distance")["split"]), "it was selected on"
    assert panel.trained_range("distance") == (4, 8) and panel.trained_range("length") == (64, 64)


def test_arms_trained_on_different_ranges_keep_their_own():
    wide = [row | {"arm": "wide", "train_distance": [4, 16]} for row in study2(1, arms=("rope",))]
    panel = panel_of(study2(1, arms=("rope",)) + wide)
    assert panel.trained_ranges("distance") == [(4, 8), (4, 16)]


def test_seeds_that_did_not_fit_enter_no_mean():
    rows = study2(4, unfit=(("none", 0),))
    table = axis_table(panel_of(rows), "distance", "first_accuracy")
    assert table.head[1] == "none\n3 seeds of 4" and table.head[2] == "rope\n4 seeds"
    far_away = next(line for line in table.lines if line[0] == "30")
    assert far_away[1].startswith("0.03"), "the seed that did not fit scores .4 there"
    head = axis_table(panel_of(study2(2, unfit=("none",))), "distance", "first_accuracy").head
    assert head[1] == "none *\ndid not fit"
    assert "none" in all_seeds_sentence(panel_of(rows)) and all_seeds_sentence(panel_of(study2(2))) == ""


def test_few_seeds_have_no_interval():
    for values, text in (
        ([0.5], "0.50"),
        ([0.75, 0.25], "0.50 (0.25 0.75)"),
        ([0.5, 0.6, 0.7], "0.60 [0.35, 0.85]"),
        ([], "-"),
    ):
        assert format_mean(over_seeds(values, (0.0, 1.0))) == text
    assert format_mean(over_seeds([0.9, 0.99, 1.0], (0.0, 1.0)))[-5:] == "1.00]", "an accuracy ends at 1"


def test_console_tables_show_chance_and_parts_of_a_paste_apart():
    text = summary_tables(study1(1) + study2(1))
    assert "first pasted token by distance" in text and "rest of the paste by distance" in text
    assert "one seed" in text and "chance" in text and "bag" in text and "* did not fit" in text
    assert max(len(line) for line in text.splitlines()) <= 140


def test_seen_and_unseen_set_side_by_side(tmp_path):
    made = panels(frame(study1(2) + study2(2, unfit=("none",))))
    beside = report_two_by_two.one_fixed_distance(made)
    assert beside is made[0]
    (path,) = report_two_by_two.two_by_two(made[1], tmp_path)
    assert path.name == "study2_two_by_two.png" and path.is_file()
    assert report_two_by_two.two_by_two(made[0], tmp_path) == [], "one distance: two of the four are missing"
    assert report_two_by_two.two_by_two(panels(frame(study2(1, windows=(64,))))[0], tmp_path) == []


def test_nearer_distances_at_new_lengths_stay_out_of_the_four(tmp_path, monkeypatch):
    """They stand below the trained ones: a block from them to those beyond would be painted over what was trained."""
    rows = study2(1, arms=("rope",))
    near = [row | {"distance": 0} for row in rows if row["split"] == "both"]
    drawn = []
    monkeypatch.setattr(report_two_by_two, "block", lambda ax, arm, metric, leftmost: drawn.append(arm.table))
    (panel,) = panels(frame(rows + near))
    assert report_two_by_two.two_by_two(panel, tmp_path)
    assert drawn[0]["distance"].min() == min(row["distance"] for row in rows if row["split"] == "test")
    assert {"test", "longer", "farther", "both"} == set(drawn[0]["split"])


def test_the_four_means_are_those_of_the_rows():
    from matplotlib.figure import Figure

    panel = panel_of(study2(2, arms=("rope",)))
    ax = Figure().subplots()
    shown = panel.table["split"].isin(report_two_by_two.SHOWN)
    report_two_by_two.block(ax, panel.select(shown), "first_accuracy", True)
    written = [text.get_text() for text in ax.texts if text.get_text().replace(".", "").isdigit()]
    means = panel.table.groupby(["split", "length", "distance"])["first_accuracy"].mean().groupby("split").mean()
    assert written == [f"{means[split]:.2f}".removeprefix("0") for split in ("test", "farther", "longer", "both")]


def test_the_four_means_are_over_cells_that_all_arms_have(tmp_path, monkeypatch):
    """An arm that was also asked far away, where it fails, is no worse beside one that was not."""
    rows = study2(3, arms=("rope",), distances=range(4, 33)) + study2(3, arms=("alibi",), distances=range(4, 11))
    figures = []
    monkeypatch.setattr(report_two_by_two, "save", lambda figure, path: figures.append(figure) or path)
    (panel,) = panels(frame(rows))
    report_two_by_two.two_by_two(panel, tmp_path)
    ax = next(ax for ax in figures[0].axes if ax.get_title(loc="left") == "rope")
    at = panel.table[(panel.table["arm"] == "rope") & (panel.table["distance"] <= 10)]
    words = [text.get_text() for text in ax.texts]
    for split in ("farther", "both"):
        seeds = at[at["split"] == split].groupby("seed")["first_accuracy"].mean()
        low, high = (f"{min(1, max(0, end)):.2f}".removeprefix("0") for end in t_interval(tuple(seeds)))
        assert {f"{seeds.mean():.2f}".removeprefix("0"), f"[{low}, {high}]"} <= set(words), words
    note = " ".join(figures[0].get_suptitle().split())
    assert "farther L64 d11" in note and "(only in rope)" in note and "95 % t interval over seeds" in note


def test_a_mean_of_two_seeds_shows_both():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    report_two_by_two.write_mean(ax, over_seeds((0.25, 0.75)), [0, 0])
    assert [text.get_text() for text in ax.texts] == [".50", ".25, .75"]


def test_a_task_whose_axes_are_tied_shows_what_it_was_asked():
    tied = [row for row in study2(2) if row["split"] in ("validation", "test")]
    tied += [row for row in study2(2) if row["split"] == "both" and row["distance"] in (9, 12)]
    text = summary_tables([row | {"length": 2 * row["distance"] - 1, "train_length": 15} for row in tied])
    lines = [line.split() for line in text.splitlines() if line.strip().startswith("rope")]
    assert [line[4:6] for line in lines] == [["trained", "1.00"], ["17", "9"], ["23", "12"]], text
    assert "new lengths and distances at once" in text and "first pasted token" in text


def test_trained_lengths_count_where_they_were_not_asked():
    some = [row for row in study1(1) if row["length"] in (4, 8, 48)]
    assert panel_of(some).trained_range("length") == (4, 16)
    told = [row | {"shortest_train_length": 4} for row in some]
    for asked in ((8, 48), (48,), (4, 8)):
        assert panel_of([row for row in told if row["length"] in asked]).trained_range("length") == (4, 16)
    assert "(trained: 4 to 16)" in summary_tables([row for row in told if row["length"] > 4])


def test_older_rows_that_say_the_longest_trained_length_alone_stay_readable():
    some = [row for row in study1(1) if row["length"] in (4, 8, 48)]
    assert panel_of([row for row in some if row["length"] == 48]).trained_range("length") == (16, 16)
    mixed = [row | ({"shortest_train_length": 4} if row["arm"] == "rope" else {}) for row in some if row["length"] > 4]
    ranges = panel_of(mixed).trained_ranges("length")
    assert ranges == [(4, 16), (8, 16)], "of an arm that doesn't say, what was asked"


def test_many_arms_wrap(tmp_path):
    rows = study2(1, arms=tuple(STYLES)[:14], distances=range(2, 12))
    text = summary_tables(rows)
    assert max(len(line) for line in text.splitlines()) <= 140 and text.count("chance") == 2 * 2 * 3
    assert report_maps.heat_maps(panels(frame(rows[: len(rows) // 2]))[0], tmp_path)[0].is_file()


UNEVEN = (4, 5, 6, 8, 12, 24, 48)


def drawn_heat(rows, folder, monkeypatch):
    figures = []
    monkeypatch.setattr(report_maps, "save", lambda figure, path: figures.append(figure) or path)
    (panel,) = panels(frame(rows))
    report_maps.heat_maps(panel, folder)
    return figures[0].axes[0]


def test_cells_of_a_map_are_as_wide_as_their_steps(tmp_path, monkeypatch):
    ax = drawn_heat(study2(1, arms=("rope",), distances=UNEVEN, windows=(64, 128, 512)), tmp_path, monkeypatch)
    (mesh,) = ax.collections
    corners = np.asarray(mesh.get_coordinates())
    up, across = corners[:, 0, 1], corners[0, :, 0]
    at = np.log2(1 + np.array(UNEVEN))
    assert up[1:-1] == pytest.approx((at[1:] + at[:-1]) / 2) and np.diff(up)[-1] > 3 * np.diff(up)[0]
    assert np.diff(across)[2] > 1.8 * np.diff(across)[0], "from 128 to 512 is twice as far as from 64 to 128"
    marked = sorted({*ax.yaxis.get_minorticklocs(), *ax.get_yticks()})
    assert marked == pytest.approx(at), "every distance is marked, and nothing else"
    named = dict(zip((text.get_text() for text in ax.get_yticklabels()), ax.get_yticks(), strict=True))
    assert "48" in named and all(place == pytest.approx(np.log2(1 + float(name))) for name, place in named.items())
    (frame_drawn,) = ax.patches
    low, high = frame_drawn.get_y(), frame_drawn.get_y() + frame_drawn.get_height()
    assert (low, high) == pytest.approx((up[0], up[4])), "the frame holds 4 to 8"


def test_even_distances_stay_even(tmp_path, monkeypatch):
    ax = drawn_heat(study2(1, arms=("rope",), distances=range(4, 33)), tmp_path, monkeypatch)
    up = np.asarray(ax.collections[0].get_coordinates())[:, 0, 1]
    assert up == pytest.approx(np.arange(3.5, 33))


def test_a_strip_breaks_where_steps_are_larger(tmp_path, monkeypatch):
    ax = drawn_heat(study2(1, arms=("rope",), distances=UNEVEN, windows=(64,)), tmp_path, monkeypatch)
    assert [text.get_text() for text in ax.get_xticklabels()] == [f"{value}" for value in UNEVEN]
    cells = sorted(patch.get_x() for patch in ax.patches if patch.get_width() == 1)
    wide = np.diff(cells)
    assert list(wide > 1) == [False, False, True, True, True, True]


def test_references_are_drawn_where_they_apply():
    panel = panel_of([row | {"ceiling": 0.9} for row in study2(1)])
    assert set(panel.references("distance", "first_accuracy")) == {"chance", "ceiling"}
    rest, all_ = (panel.references("distance", f"{part}_accuracy") for part in ("rest", "token"))
    assert set(rest) == {"chance", "ceiling", "1-gram baseline, rest", "2-gram baseline, rest"}, "over the same tokens"
    assert set(all_) == {"chance", "ceiling", "1-gram baseline", "2-gram baseline"}
    assert rest["2-gram baseline, rest"].mean() == pytest.approx(0.95) and all_[
        "2-gram baseline"
    ].mean() == pytest.approx(0.74)
    assert set(panel.references("distance", "exact_match")) == {"ceiling"}, "the chance of a token is none of a paste"
    assert set(panel_of(study1(1)).references("length", "exact_match")) == {"chance", "bag of words"}
    recall = panel_of([row | {"baselines": {"ngram_1": 1.0}} for row in study1(1)])
    assert set(recall.references("length", "exact_match")) == {"chance", "1-gram baseline"}


def test_solved_up_to_and_far_numbers_of_a_run():
    panel = panel_of(study1(1))
    assert solved_up_to(panel.arm("rope"), "length") == 48
    assert solved_up_to(panel.arm("learned"), "length") == 16
    assert solved_up_to(panel.arm("none"), "length") is None
    panel = panel_of(study2(1))
    numbers = far(panel.arm("rope"), "first_accuracy")
    assert numbers.invalid == "" and numbers.total == pytest.approx(6, abs=1) and 0 < numbers.ratio < 0.3
    assert numbers.ngram is None
    rest, all_ = (far(panel.arm("rope"), f"{part}_accuracy").ngram for part in ("rest", "token"))
    assert [rest, all_] == pytest.approx([24 / 8] * 2), "of a flat curve: 24 distances beyond over 8 within"
    assert far(panel_of(study1(1)), "exact_match") is None


def test_headline_and_far_tables():
    table = headline_of(study1(3))
    head, lines = table.head, table.lines
    assert head[:2] == ["arm", "solved up to length"]
    assert {line[0]: line[1] for line in lines}["none"] == "did not fit"
    assert {line[0]: line[1] for line in lines}["rope"] in ("48", "48 to 128")
    lines = far_of(study2(3)).lines
    assert [line[:2] for line in lines][:2] == [["none", "first pasted token"], ["none", "rest of the paste"]]
    assert far_of(study1(1)) is None
    gaps = far_of([row for row in study2(1) if row["distance"] not in (20, 21)])
    assert "not valid: 2 distances were not evaluated" in gaps.lines[0][4]
    table = far_of([row for row in study2(1) if row["split"] != "nearer"])
    head, lines = table.head, table.lines
    assert "sum, d 4 to 32" in head and "not valid: 3 distances were not evaluated" in lines[0][4]
    unanswered = [row | ({"first_accuracy": None} if row["distance"] == 32 else {}) for row in study2(1)]
    assert "not valid: distance 32 was not evaluated" in far_of(unanswered).lines[0][4]


def test_an_ngram_baseline_is_no_null_for_the_token_that_it_cannot_begin():
    table = far_of(study2(1))
    head, lines = table.head, table.lines
    shown = {line[1]: dict(zip(head, line, strict=True)) for line in lines}
    assert shown["first pasted token"]["P of a 2-gram baseline"] == "-"
    assert float(shown["rest of the paste"]["P of a 2-gram baseline"]) > 0
    assert "sum, d 1 to 32" in head and shown["rest of the paste"]["best sum"]


def test_the_docs_define_the_numbers_as_reports_do():
    assert DEFINITIONS in (Path(__file__).parents[2] / "docs" / "headline_numbers.md").read_text()


def test_no_winner_is_named_where_the_test_does_not_carry_it():
    few = contrasts(panel_of(study2(2)))
    assert few and all(one.verdict.startswith("underpowered") for one in few)
    many = contrasts(panel_of(study2(9)))
    found = {one.name: one for one in many}
    assert found["farther: none - rope"].verdict == "none higher"
    assert found["farther: none - rope"].holm_p < 0.05
    same = [row | {"arm": "twin"} for row in study2(9, arms=("rope",))]
    twins = contrasts(panel_of(study2(9, arms=("rope",)) + same))
    assert {one.verdict for one in twins} == {"no significant difference"}


def test_of_perplexities_the_lower_is_named():
    rows = [row | {"perplexity": 10 * row["first_accuracy"]} for row in study2(9)]
    found = {one.name: one.verdict for one in contrasts(panel_of(rows))}
    assert found["farther: none - rope"] == "rope lower"


def test_declared_contrasts_are_corrected_among_themselves():
    pairs = [("none", "rope")]
    (one,) = [c for c in contrasts(panel_of(study2(6)), pairs) if c.name.startswith("farther")]
    assert one.pairs == 6 and one.verdict.startswith("underpowered"), "two axes, so two contrasts"
    assert one.smallest_p == pytest.approx(2 * 2 / 2**6)
    (one,) = contrasts(panel_of(study2(6, windows=(64,))), pairs)
    assert one.verdict == "none higher" and one.holm_p == one.smallest_p == pytest.approx(2 / 2**6)


def test_the_table_of_differences_shows_the_interval_and_the_smallest_p():
    panel = panel_of(study2(6, windows=(64,)))
    table = contrast_table(contrasts(panel, [("none", "rope")]))
    head, (line,) = table.head, table.lines
    (one,) = contrasts(panel, [("none", "rope")])
    means = panel.table[panel.table["split"] == "farther"].groupby(["arm", "seed"])["first_accuracy"].mean()
    low, high = t_interval(means["none"] - means["rope"])
    shown = dict(zip(head, line, strict=True))
    assert shown["mean difference"] == f"{one.difference:+.3f} [{low:+.3f}, {high:+.3f}]"
    assert low < one.difference < high and shown["smallest p possible"] == "0.031"
    assert contrasts(panel_of(study2(2, windows=(64,))), [("none", "rope")])[0].verdict.endswith(
        "2 pairs can't reach p < .05 in 1 contrast"
    )
    lines = contrast_table(contrasts(panel_of(study2(2)))).lines
    assert len(lines) == 6 and "[" not in lines[0][3] and lines[0][4] == "1.000"


def test_a_report_tests_the_contrasts_that_were_declared(tmp_path, capsys):
    write_rows(tmp_path / "sweep" / "results.jsonl", [row for row in study1(2) if row["length"] in (4, 16, 48)])
    assert declared_contrasts([tmp_path / "sweep"]) is None
    (tmp_path / "sweep" / "sweep.yaml").write_text("contrasts: [[learned, rope]]\npanels: {}\n")

    def differences():
        return [
            line for line in (tmp_path / "out" / "report.md").read_text().splitlines() if line.startswith("| longer: ")
        ]

    command = ["report", str(tmp_path / "sweep"), "-o", str(tmp_path / "out")]
    main(command)
    assert [line.split("|")[1].strip() for line in differences()] == ["longer: learned - rope"]
    main([*command, "--contrasts", "sinusoidal:rope", "sinusoidal:learned"])
    assert [line.split("|")[1].strip() for line in differences()] == [
        "longer: sinusoidal - rope",
        "longer: sinusoidal - learned",
    ]
    with pytest.raises(SystemExit):
        main([*command, "--contrasts", "none:rpoe"])
    assert "unknown arm 'rpoe' (did you mean 'rope'?); allowed: none, learned" in capsys.readouterr().err


def test_an_encoding_looks_the_same_everywhere():
    look = styles({"rope": "rope", "rope base 1e6": "rope", "mine": "mine", "alibi": "alibi"})
    assert look["rope"].colour == look["rope base 1e6"].colour and look["rope"].dash != look["rope base 1e6"].dash
    assert look["rope"] == styles({"rope": "rope"})["rope"]
    assert len(set(STYLES.values())) == len(STYLES), "no two encodings look alike"
    assert in_order({"z": "rope", "a": "unheard-of", "b": "none"}) == ["b", "z", "a"]


def test_facts_name_what_varies():
    assert facts(panel_of(study1(2))) == "18,688 to 84,288 parameters, no anchor token, 2 seeds, 500 sequences per cell"
    assert panel_of(study1(3, unfit=("none", ("alibi", 2)))).fits["alibi"] == (2, 3)
    mixed = [row | {"bos": row["arm"] == "none"} for row in study2(1)]
    assert "anchor token in some arms" in facts(panel_of(mixed))


def test_a_drawn_line_per_seed_below_three_and_a_band_from_three_on():
    from matplotlib.figure import Figure

    def drawn(seeds):
        ax = Figure().subplots()
        handles = report_figures.curve(ax, panel_of(study2(seeds, arms=("rope",))), "distance", "first_accuracy")
        assert ("band: 95 % t interval over seeds" in [handle.get_label() for handle in handles]) == (seeds >= 3)
        blue = [line for line in ax.lines if line.get_color() == STYLES["rope"][0]]
        return len(blue), len(ax.collections)

    assert drawn(2) == (2, 0)
    assert drawn(3) == (1, 1)
    ax = Figure().subplots()
    report_figures.curve(ax, panel_of(study1(2, arms=("none", "rope"))), "length", "exact_match")
    assert ax.get_xscale() == "log"
    assert not [line for line in ax.lines if line.get_color() == STYLES["none"][0]], "grey: it did not fit"
    xs = np.concatenate([line.get_xdata() for line in ax.lines if line.get_color() == STYLES["rope"][0]])
    assert xs.max() == 1024


def test_the_table_of_fits_says_what_each_arm_cost():
    rows = [row | {"train_flops": 1.25e12} for row in study1(2)]
    table = fit_table(panel_of(rows))
    heading, lines = table.head, table.lines
    assert {"parameters", "training FLOPs"} <= set(heading)
    assert all(line[heading.index("training FLOPs")] == "1.2e+12" for line in lines)


def test_a_report_has_the_title_and_the_labels_that_were_asked_for(tmp_path, capsys):
    rows = [row for row in study1(1, unfit=()) if row["arm"] in ("rope", "alibi") and row["length"] in (4, 16, 48)]
    write_rows(tmp_path / "run" / "results.jsonl", rows)
    out = tmp_path / "out"
    options = ["--title", "Mine | <b>", "--labels", "rope=RoPE $x$ | base=500", "--contrasts", "rope:alibi"]
    main(["report", str(tmp_path / "run"), "-o", str(out), *options])
    text = (out / "report.md").read_text()
    assert text.startswith("# Mine \\| &lt;b&gt;\n") and "RoPE \\$x\\$ \\| base=500" in text and "| rope " not in text
    assert "alibi" in text and "RoPE $x$ | base=500" in capsys.readouterr().out
    assert "<title>Mine | &lt;b&gt;</title>" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"ropee": "x"}, "unknown arm 'ropee'.*did you mean 'rope'"),
        ({"rope": "alibi"}, "rope, alibi would all be shown as 'alibi'"),
        ({"rope": " "}, "label of arm 'rope' is empty"),
    ],
)
def test_labels_that_would_mix_arms_are_refused(labels, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        report(study1(1, arms=("rope", "alibi")), tmp_path / "out", labels=labels)
    assert not (tmp_path / "out").exists()


def test_a_label_without_an_arm_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path), "-o", str(tmp_path / "out"), "--labels", "RoPE"])
    assert "must be ARM=TEXT" in capsys.readouterr().err


def test_means_stand_beside_the_chance_of_their_own_score():
    """An exact match of several tokens is guessed far more rarely than one of them."""
    rows = [row | {"exact_match_chance": 0.0009} for row in study1(1, arms=("rope",), unfit=())]
    line = headline_of(rows).lines[-1]
    assert line[0] == "chance" and "0.0009" in line and "0.062" not in line
    trained = summary_tables([row for row in rows if row["length"] <= 16])
    assert "exact match: chance" in trained and "0.0009" in trained
    silent = [{key: value for key, value in row.items() if "chance" not in key} for row in rows]
    assert all(line[0] != "chance" for line in headline_of(silent).lines)
    assert "exact match: chance" not in summary_tables([row for row in silent if row["length"] <= 16])


def test_a_cell_without_a_score_is_named_where_it_is_in_no_mean(tmp_path):
    rows, why = synthetic_text(3), "perplexity infinite: a scored token has next to no probability"
    for row in rows:
        if row["arm"] == "learned" and row["seed"] == 1 and row["length"] == 1024:
            row.update({"perplexity": None, "perplexity_low": None, "perplexity_high": None, "problem": why})
    sentence = f"Without perplexity, and in no mean of it: learned seed 1: longer L1024 ({why})."
    assert sentence in summary_tables(rows)
    assert sentence in report(rows, tmp_path).markdown.read_text()
    assert "Without" not in summary_tables(synthetic_text(3))
