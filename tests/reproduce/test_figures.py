"""The studies' figures: every arm told apart and named, in the reports' colours, and no interval cut."""

import numpy as np

from hf_posgen.analysis.registry import find_analysis
from hf_posgen.plotting import look
from hf_posgen.report.style import STYLES
from hf_posgen.reproduce.study1 import figures as study1
from hf_posgen.reproduce.study2.figures_by_count import diversity
from hf_posgen.reproduce.verdicts import Run
from hf_posgen.sweep.spec import read_sweep
from tests.analysis.by_hand import clipped_solution

from .test_study2_claims import made

ENCODINGS = ("rope", "learned", "sinusoidal", "none", "alibi", "clipped")


def study1_runs():
    """Made-up runs of every panel and arm of the study."""
    lengths = (8, 16, 17, 48)
    for panel, part in read_sweep("study1")["panels"].items():
        for arm in part["arms"]:
            encoding = next((name for name in ENCODINGS if arm.startswith(name)), "none")
            for seed in range(3):
                accuracy = {n: min(1.0, 16 / n) - 0.01 * seed for n in lengths}
                counts = dict.fromkeys(lengths, 0.1)
                yield Run(panel, arm, encoding, seed, arm != "alibi", 100, accuracy, counts)


def test_every_arm_of_study_1_has_a_name_and_a_look_of_its_own():
    runs = list(study1_runs())
    assert {run.arm for run in runs} <= set(study1.ARMS) and {run.panel for run in runs} <= set(study1.PANELS)
    for panel in {run.panel for run in runs}:
        arms = {run.arm: run.encoding for run in runs if run.panel == panel}
        looks = study1.arm_styles([run for run in runs if run.panel == panel])
        assert len({style.colour for style in looks.values()}) == len(arms), f"{panel}: an arm, a colour"
        for arm, style in looks.items():
            colour, marker = STYLES[arms[arm]]
            assert style.marker == marker and (style.variant or style.colour == colour.lower()), "as in the reports"


def test_legends_of_study_1_name_what_is_drawn_and_hide_nothing():
    with look():
        figure = study1.curves(list(study1_runs()))
        figure.draw_without_rendering()
    for ax in figure.axes:
        legend = ax.get_legend()
        assert legend.get_window_extent().y1 <= ax.get_window_extent().y0
        texts = [text.get_text() for text in legend.get_texts()]
        assert len(set(texts)) == len(texts) and "bag of words" in texts and "trained lengths" in texts
        assert not {text.removesuffix(" (did not fit)") for text in texts} & {"learned-init1", "rope-lineargrid-linear"}


def test_intervals_that_reach_zero_are_drawn_whole():
    runs = made("b range-1", "none", 0, seeds=4, trained=(0, 1), asked=16)
    runs += made("b range-2", "none", 4, seeds=4, trained=(0, 2), asked=16)
    for run in runs:
        for row in run.rows:
            row |= {"count": 1000, "bos": True}
            if run.panel == "b range-1" and row["distance"] > 1:
                row["first_accuracy"] = 1 / 32 + 0.02 * (run.seed - 1.5)
    won = [run.far().won for run in runs if run.panel == "b range-1"]
    assert min(won) < 0 < max(won)
    with look():
        figure = diversity(runs)
    left = figure.axes[0]
    ends = [end for lines in left.collections for path in lines.get_segments() for end in path[:, 1]]
    low, high = left.get_ylim()
    assert min(ends) < 0 and low <= min(ends) and max(ends) <= high and np.isfinite(ends).all()
    assert "for comparison: W in proportion to the trained delays" in [
        text.get_text() for text in figure.legends[0].get_texts()
    ]


def test_the_right_key_is_marked_for_every_length():
    pinning = find_analysis("pinning")
    result = pinning.measure(clipped_solution())
    with look():
        figure = pinning.figure(result)
    for ax, entries in zip(
        figure.axes, (result["heads"], [e["query_in_range"] for e in result["heads"]]), strict=False
    ):
        circles = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
        assert circles == [entry["right_key"] for entry in entries]
        assert "the right key" in [text.get_text() for text in ax.get_legend().get_texts()]
