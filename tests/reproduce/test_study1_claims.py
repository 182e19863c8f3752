"""The judge, on made-up runs whose verdict is known."""

from dataclasses import replace

import pytest

from hf_posgen.reproduce.study1 import claims
from hf_posgen.reproduce.verdicts import Run, combine, summary

COUNTS = {16: 0.19, 17: 0.19, 48: 0.133, 128: 0.1, 1024: 0.077}


def runs(panel, arm, accuracy, seeds=6, fit=True, **analysis):
    by_length = dict.fromkeys(COUNTS, accuracy) | {16: 1.0}
    return [Run(panel, arm, arm, seed, fit, 100, by_length, COUNTS, analysis) for seed in range(seeds)]


def both(rope=1.0, learned=0.13):
    made = []
    for k in claims.OFFSETS:
        made += runs(f"offset{k}", "rope", rope) + runs(f"offset{k}", "learned", learned)
    return made


@pytest.mark.parametrize(
    ("rope", "learned", "verdict"),
    [
        (1.0, 0.13, "reproduced"),
        (0.9, 0.13, "partly reproduced"),
        (1.0, 0.5, "partly reproduced"),
        (0.9, 0.5, "not reproduced"),
    ],
)
def test_relative_against_learned(rope, learned, verdict):
    assert claims.relative_against_learned(both(rope, learned)).verdict == verdict


def test_too_few_fitted_seeds_are_not_judged():
    few = [replace(run, fit=run.seed < 5) for run in both()]
    found = claims.relative_against_learned(few)
    assert found.verdict == "not judged" and "fewer than 6" in found.reason


def test_a_part_that_cannot_be_judged_keeps_a_claim_from_being_reproduced():
    assert combine({"a": True, "b": None}) == ("partly reproduced", "holds: a; fewer than 6 fitted seeds: b")
    assert combine({"a": False, "b": None})[0] == "not reproduced"
    assert combine({"a": True, "b": True})[0] == "reproduced"


def pinned(in_range, right=0.0):
    entry = {"layer": 0, "head": 0, "null": 0.3, "in_range": in_range, "right": right, "modal_share": 1.0}
    entry |= {"query_in_range": {"right": 1.0}}
    return {"heads": [entry | {"length": n} for n in claims.PINNED_AT]}


@pytest.mark.parametrize(("scattered", "verdict"), [(0.95, "reproduced"), (0.5, "partly reproduced")])
def test_pinning_must_show_at_both_scales(scattered, verdict):
    made = runs("offset3", "learned", 0.1, pinning=pinned(1.0))
    made += runs("offset3", "learned-init1", 0.1, pinning=pinned(scattered))
    assert claims.pinning(made).verdict == verdict


def kernel(peak, rank_one, untrained):
    facts = {"peak": peak, "rank_one": rank_one, "alignment": 0.8, "margin_at_offset": 1.0, "alias_gap": 0.1}
    return {"heads": [facts | {"untrained": {"rank_one": untrained, "alignment": 0.0}}]}


@pytest.mark.parametrize(
    ("rank_one", "untrained", "verdict"),
    [(0.98, 0.4, "reproduced"), (0.85, 0.4, "not reproduced"), (0.98, 0.8, "not reproduced")],
)
def test_a_carrier_must_beat_its_untrained_self(rank_one, untrained, verdict):
    made = []
    for k in claims.OFFSETS:
        made += runs(f"offset{k}", "rope", 1.0, carrier_kernel=kernel(k, rank_one, untrained))
    assert claims.carrier(made).verdict == verdict


@pytest.mark.parametrize(("error", "peak", "verdict"), [(1e-6, 3, "partly reproduced"), (1e-2, 0, "not reproduced")])
def test_equivariance_and_peak(error, peak, verdict):
    """The peak at 3 is right for one of the three offsets."""
    made = []
    for k in claims.OFFSETS:
        analysis = {"equivariance": {"float32": [error, None]}, "carrier_kernel": kernel(peak, 1, 0)}
        made += runs(f"offset{k}", "rope", 1.0, **analysis)
    assert claims.equivariance(made).verdict == verdict


@pytest.mark.parametrize(
    ("alone", "full", "verdict"),
    [(0.97, 1.0, "reproduced"), (0.5, 1.0, "partly reproduced"), (0.5, 0.5, "not reproduced")],
)
def test_dilution_is_about_c_alone(alone, full, verdict):
    accuracy = {"measured": [1.0, 1.0], "full_kernel": [1.0, full], "mean_kernel": [1.0, 0.5], "c_alone": [1.0, alone]}
    facts = dict.fromkeys(("c_inside", "c_beyond", "r2_inside", "r2_frozen", "r2_beyond"), 0.5)
    result = facts | {"accuracy": accuracy, "lengths": [16, 1024], "alpha_over_law": [1, 1]}
    assert claims.dilution(runs("offset3", "rope", 1.0, dilution=result)).verdict == verdict


def test_linear_attention_on_one_grid_is_partly():
    made = runs("linear", "rope-linear", 0.12) + runs("linear", "rope-lineargrid-linear", 0.98)
    assert claims.linear(made).verdict == "partly reproduced"
    unfit = runs("linear", "rope-linear", 0.12, fit=False) + runs("linear", "rope-lineargrid-linear", 0.12, fit=False)
    assert claims.linear(unfit).verdict == "not judged"


def test_nothing_run_means_nothing_judged():
    assert {verdict.verdict for verdict in claims.judge([])} == {"not judged"}


def test_a_summary_over_seeds():
    assert summary([0.5, 0.5, 0.5]) == {"n": 3, "mean": 0.5, "low": 0.5, "high": 0.5}
    assert summary([0.2, None]) == {"n": 1, "mean": 0.2, "low": None, "high": None}
