"""The judge of study 2, on made-up runs whose verdict is known."""

import numpy as np
import pytest

from hf_posgen.reproduce.study2 import claims
from hf_posgen.reproduce.study2.contrasts import paired
from hf_posgen.reproduce.study2.streams import streams

SMALL, LARGE = 200_000, 25_000_000
REACH = {"none": 8, "alibi": 5, "rope": 1}


def made(panel, arm, reach, *, seeds=8, fit=True, kind="full", trained=(4, 8), asked=25, parameters=SMALL, level=1.0):
    """Runs right at the trained delays and `reach` beyond them, and at the floor from there; each seed a little apart."""
    rows = []
    for seed in range(seeds):
        for d in range(asked):
            inside = trained[0] <= d <= trained[1]
            value = level if d <= trained[1] + reach else 1 / 32 + 0.001 * seed
            row = {"panel": panel.split(" ", 1)[1], "kind": kind, "arm": arm, "encoding": arm, "seed": seed, "fit": fit}
            row |= {"run": f"{panel}-{arm}-{seed}", "task": "delay_copy", "parameters": parameters, "length": 64}
            row |= {"split": "test" if inside else "farther", "distance": d, "train_distance": list(trained)}
            row |= {"exact_match": value, "first_accuracy": value, "rest_accuracy": value, "token_accuracy": value}
            row |= {"chance": 1 / 32, "ceiling": 1.0, "baselines": {"ngram_2": 0.5}, "train_length": 64}
            rows.append(row)
    return streams(rows, {}, panel.split()[0])


def both_tasks(reach=REACH, unfit=(), **options):
    return [
        run
        for kind in ("full", "selective")
        for arm, far in reach.items()
        for run in made(f"a {kind}", arm, far, kind=kind, fit=arm not in unfit, **options)
    ]


def test_a_run_is_its_curve():
    (run,) = made("a full", "none", 3, seeds=1)
    assert run.panel == "a full" and run.trained == (4, 8) and run.curve()[11] == 1.0 and run.curve()[12] < 0.1
    assert run.beyond == pytest.approx(3 + 13 / 32) and run.mean(range(4, 12)) == 1.0
    assert run.far().invalid == ""


def test_pairs_are_seeds_where_both_fit():
    a, b = made("a full", "none", 3, seeds=3), made("a full", "rope", 1, seeds=2)
    d = paired(a + b, ("a full", "none"), ("a full", "rope"), lambda run: run.beyond)
    assert d == pytest.approx([2 - 2 / 32, 2 - 2 / 32 - 0.002], abs=1e-9)


@pytest.mark.parametrize(
    ("reach", "verdict"),
    [
        (REACH, "reproduced"),
        (REACH | {"alibi": 1}, "partly reproduced"),
        ({"none": 1, "alibi": 1, "rope": 8}, "not reproduced"),
    ],
)
def test_rope_worst(reach, verdict):
    found = claims.rope_worst(both_tasks(reach, parameters=LARGE))
    assert found.verdict == verdict and "25,000,000 parameters" in found.reason
    small = claims.rope_worst(both_tasks(reach))
    assert small.verdict == ("not judged" if verdict == "not reproduced" else verdict), "a small model refutes nothing"


def test_six_pairs_cannot_carry_three_contrasts():
    found = claims.rope_worst(both_tasks(seeds=6, parameters=LARGE))
    assert found.verdict == "not judged" and "too few fitted pairs" in found.reason
    assert claims.rope_worst(both_tasks(seeds=7)).verdict == "reproduced"


def test_an_arm_that_does_not_fit_leaves_its_contrasts_open():
    found = claims.rope_worst(both_tasks(unfit=("none",)))
    assert (
        found.verdict == "partly reproduced"
        and "too few fitted pairs of seeds for the test: C: none > rope" in found.reason
    )


def test_none_over_alibi_needs_the_papers_size():
    assert claims.none_over_alibi(both_tasks(parameters=LARGE)).verdict == "reproduced"
    found = claims.none_over_alibi(both_tasks())
    assert found.verdict == "not judged" and "8 layers of width 512" in found.reason
    assert found.numbers["C"]["difference"] > 0, "the number is shown"


@pytest.mark.parametrize(("exponent", "verdict"), [(0.5, "reproduced"), (1.3, "not reproduced")])
def test_diversity_is_a_slope(exponent, verdict):
    runs = []
    for high in (2, 4, 8, 16):
        for arm in REACH:
            reach = round(6 * (high + 1) ** exponent / 3**exponent)
            runs += made(f"b range-{high}", arm, reach, trained=(0, high), asked=high + reach + 5, parameters=LARGE)
    found = claims.diversity(runs)
    assert found.verdict == verdict, found.reason
    assert found.numbers["slope rope"]["mean"] == pytest.approx(exponent, abs=0.1)
    three = [run for run in runs if run.panel != "b range-16"]
    assert claims.diversity(three).verdict == "not judged"


def mixture(study, separated, changes):
    """Both tasks alone at half accuracy, and mixed with changes {(kind, arm): {region's delays: change}}."""
    runs = []
    for kind, trained in (("full", (15, 25)), ("selective", (45, 55) if separated else (25, 35))):
        for arm in REACH:
            alone = made(
                f"{study} {kind}", arm, 200, kind=kind, trained=trained, asked=121, parameters=LARGE, level=0.5
            )
            both = made(f"{study} mixed", arm, 200, kind=kind, trained=trained, asked=121, parameters=LARGE, level=0.5)
            for run in both:
                for distances, change in changes.get((kind, arm), {}).items():
                    for row in run.rows:
                        row["token_accuracy"] += (row["distance"] in distances) * (change + 0.01 * np.sin(run.seed))
            runs += alone + [run.__class__(**{**run.__dict__, "panel": f"{study} mixed {kind}"}) for run in both]
    return runs


def test_transfer_by_region():
    near, far = range(36, 56), range(56, 121)
    changes = {(kind, "rope"): {near: -0.2} for kind in ("full", "selective")}
    changes |= {(kind, arm): {near: 0.2, far: -0.2} for kind in ("full", "selective") for arm in ("none", "alibi")}
    assert claims.transfer(mixture("c", False, changes)).verdict == "reproduced"
    found = claims.transfer(mixture("c", False, changes | {("full", "rope"): {near: -0.02}}))
    assert found.verdict == "partly reproduced" and "fails: C: RoPE loses near" in found.reason
    assert found.numbers["none"]["C near"]["distances"] == "36-55"
    assert claims.transfer([]).reason == "not run"


def test_transfer_between_separated_ranges():
    changes = {("full", arm): {range(45, 56): 0.2, range(15, 26): -0.1} for arm in ("none", "alibi")}
    changes |= {("selective", arm): {range(15, 26): -0.1} for arm in ("none", "alibi")}
    assert claims.transfer_separated(mixture("c-separated", True, changes)).verdict == "reproduced"
    changes[("full", "rope")] = {range(15, 26): -0.2}
    assert (
        "fails: C: RoPE loses nothing in range"
        in claims.transfer_separated(mixture("c-separated", True, changes)).reason
    )


def by_width(unfit=()):
    return [
        run
        for width, reach in ((32, 2), (512, 8))
        for heads, sooner in ((4, 0), (8, 1))
        for arm in REACH
        for run in made(
            f"size width-{width}-heads-{heads}",
            arm,
            reach - sooner,
            fit=(width, arm) not in unfit,
            parameters=LARGE,
        )
    ]


def test_size():
    found = claims.size(by_width(unfit=[(32, "none")]))
    assert found.verdict == "partly reproduced" and "too few seeds for the test: none wider is farther" in found.reason
    held = found.reason.split("holds: ")[1].split(";")[0]
    assert "only none fails to fit when narrow" in held and "ALiBi breaks sooner with 8 heads than with 4" in held
    every = claims.size(by_width())
    assert every.verdict == "partly reproduced" and "fails: only none fails to fit when narrow" in every.reason
    assert every.numbers["widest less narrowest"]["none"]["difference"] > 0


def test_seeds_differ_little_or_not():
    assert claims.seeds_minor(both_tasks(seeds=6)).verdict == "reproduced"
    runs = both_tasks(seeds=3, parameters=LARGE) + both_tasks({"none": 20, "alibi": 20, "rope": 20}, parameters=LARGE)
    assert claims.seeds_minor(runs).verdict == "not reproduced"


def test_twice_as_far():
    found = claims.twice_as_far(both_tasks({"none": 9, "alibi": 8, "rope": 1}))
    assert found.verdict == "partly reproduced" and "holds: none at 16, alibi at 16; fails: rope at 16" in found.reason
    assert found.numbers["none"]["floor"] == pytest.approx(0.031)


def test_nothing_run_means_nothing_judged():
    assert {(verdict.verdict, verdict.reason) for verdict in claims.judge([])} == {("not judged", "not run")}
