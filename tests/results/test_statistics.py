"""The statistics against values known beforehand, and against brute force."""

from itertools import product
from math import comb

import numpy as np
import pytest

from hf_posgen.metrics.functional import (
    bootstrap_ratio,
    far_numbers,
    max_solved,
    overshoot_ratio,
    ratio_beyond,
    share_beyond,
    wilson,
)
from hf_posgen.results.statistics import (
    SignFlip,
    clopper_pearson,
    holm,
    sign_flip,
    smallest_p,
    t_interval,
    underpowered,
)


@pytest.mark.parametrize(("n", "low", "high"), [(100, 0.89, 0.98), (1000, 0.935, 0.962)])
def test_wilson_spans_what_it_should(n, low, high):
    assert wilson(0.95 * n, n) == pytest.approx((low, high), abs=0.0055 if n == 100 else 0.0006)


def test_wilson_at_the_ends():
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(500, 500)[1] == 1.0 and 0.99 < wilson(500, 500)[0] < 1.0
    assert wilson(0, 500)[0] == pytest.approx(0.0, abs=1e-12) and 0.0 < wilson(0, 500)[1] < 0.01


def test_five_of_five_seeds_only_bounds_the_share_that_fits():
    low, high = clopper_pearson(5, 5)
    assert 0.478 <= low < 0.48 and high == 1.0
    assert clopper_pearson(0, 0) == (0.0, 1.0)


def test_t_interval_is_students_and_needs_three_seeds():
    values = [0.8, 0.9, 1.0, 0.7, 0.6]
    # mean .8, standard error .0707, t(.975, 4) = 2.776
    assert t_interval(values) == pytest.approx((0.8 - 2.776 * 0.070711, 0.8 + 2.776 * 0.070711), abs=1e-4)
    assert t_interval(values[:2]) is None
    assert t_interval([1.0] * 4) == (1.0, 1.0)


def test_t_interval_covers_at_five_seeds():
    rng = np.random.default_rng(0)
    intervals = [t_interval(sample) for sample in rng.normal(0.7, 0.1, size=(2000, 5))]
    assert np.mean([low <= 0.7 <= high for low, high in intervals]) == pytest.approx(0.95, abs=0.015)


def test_bootstrap_draws_sequences_not_tokens():
    """All tokens of a sequence right or all wrong: the interval is that of so many sequences."""
    scored = np.full(400, 10)
    correct = np.where(np.arange(400) < 320, 10, 0)
    low, high = bootstrap_ratio(correct, scored, draws=4000)
    assert (low, high) == pytest.approx(wilson(320, 400), abs=0.006)
    assert bootstrap_ratio(correct, scored) == bootstrap_ratio(correct, scored), "the same seed gives the same interval"
    tokens_low, _ = wilson(3200, 4000)
    assert tokens_low > low + 0.02, "an interval over tokens would be far too narrow"


def test_bootstrap_weighs_sequences_by_what_they_ask():
    correct, scored = np.array([9, 0] * 200), np.array([9, 1] * 200)
    low, high = bootstrap_ratio(correct, scored)
    assert low < 0.9 < high


def test_bootstrap_at_the_ends():
    none = np.zeros(50, int)
    assert bootstrap_ratio(none, none) == (0.0, 1.0)
    assert bootstrap_ratio(none + 3, none + 3) == wilson(50, 50)
    assert bootstrap_ratio(none, none + 3) == wilson(0, 50)


@pytest.mark.parametrize(("pairs", "p"), [(5, 0.0625), (6, 0.03125)])
def test_how_small_a_p_so_many_pairs_can_reach(pairs, p):
    assert smallest_p(pairs) == p
    assert sign_flip(np.linspace(0.1, 0.4, pairs)).p == pytest.approx(p)


@pytest.mark.parametrize("pairs", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("ties", [False, True])
def test_sign_flip_equals_brute_force(pairs, ties):
    rng = np.random.default_rng(pairs)
    d = rng.choice([-0.1, 0.1, 0.2], pairs) if ties else rng.normal(0.3, 1, size=pairs)
    sums = np.array([abs(np.dot(signs, d)) for signs in product([1, -1], repeat=pairs)])
    assert sign_flip(d) == SignFlip(pytest.approx(np.mean(sums >= abs(d.sum()) - 1e-12)), 0.0)


def test_sign_flip_takes_every_pair():
    """However many there are: exact where they can be counted, else by Monte Carlo with its error."""
    for n in (21, 25, 40):
        above = np.repeat([1.0, -1.0], [n - n // 4, n // 4])
        tail = 2 * sum(comb(n, k) for k in range(n // 4 + 1)) / 2**n
        assert sign_flip(0.1 * above) == SignFlip(pytest.approx(tail), 0.0), "a sign test"
    assert sign_flip([0.1] * 20 + [-0.4] * 5).p == 1.0
    above = np.repeat([1.0, -1.0], [40, 24])
    estimate, tail = sign_flip(above), 2 * sum(comb(64, k) for k in range(25)) / 2**64
    assert 0 < estimate.error < 0.001 and abs(estimate.p - tail) < 4 * estimate.error
    assert sign_flip([1.0] * 100).p == smallest_p(100) > 0, "no p of 0 from draws"


def test_sign_flip_at_the_ends():
    assert sign_flip([0.2]).p == 1.0
    assert sign_flip([0.0, 0.0, 0.0]).p == 1.0
    for bad in ([], [0.1, float("nan")], [float("inf")]):
        with pytest.raises(ValueError, match="one finite difference or more"):
            sign_flip(bad)


def test_power_under_holm():
    assert underpowered(5) and not underpowered(6)
    assert underpowered(8, contrasts=10) and not underpowered(9, contrasts=10)
    assert underpowered(0)


def test_holm_by_hand():
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.5})
    assert adjusted == pytest.approx({"a": 0.04, "c": 0.09, "b": 0.09, "d": 0.5})
    assert holm({"a": 0.9, "b": 0.8})["a"] == 1.0


def test_max_solved_stops_at_the_first_failure():
    assert max_solved([(16, 0.99), (32, 0.95), (48, 0.80), (64, 0.99)]) == 32
    assert max_solved([(16, 0.5), (32, 1.0)]) is None
    assert max_solved([(16, 0.99), (32, 0.95), (32, 0.5)]) == 16, "every cell of a length counts"
    assert max_solved([]) is None


@pytest.mark.parametrize(("trained_max", "ratio"), [(5, 1.38), (50, 0.14)])
def test_p_falls_for_a_model_that_overshoots_by_five_tokens(trained_max, ratio):
    assert overshoot_ratio(range(121), trained_max, lambda d: 0.03) == pytest.approx(ratio, abs=0.005)


@pytest.mark.parametrize(("trained_max", "ratio"), [(5, 14), (50, 0.96)])
def test_p_falls_for_an_ngram_baseline_that_is_blind_to_distance(trained_max, ratio):
    distances = np.arange(121)
    ngram = np.interp(distances, [15, 25, 60, 120], [0.86, 0.81, 0.67, 0.44])
    curve = dict(zip(distances.tolist(), ngram.tolist(), strict=True))
    assert ratio_beyond(curve, trained_max) == pytest.approx(ratio, rel=0.08)


def test_w_counts_the_distances_won():
    distances = range(1, 21)
    floor, ceiling = dict.fromkeys(distances, 0.1), dict.fromkeys(distances, 0.9)
    won = {d: 0.9 if d <= 13 else 0.1 for d in distances}
    assert share_beyond(won, 10, floor, ceiling) == pytest.approx(3.0)
    assert share_beyond(won, 20, floor, ceiling) is None
    assert share_beyond(won, 10, floor, floor) is None


def test_far_numbers_say_why_p_means_nothing():
    floor, ceiling = dict.fromkeys(range(1, 21), 0.1), dict.fromkeys(range(1, 21), 1.0)
    curve = {d: 1.0 if d <= 10 else 0.12 for d in range(1, 21)}
    good = far_numbers(curve, 10, floor, ceiling, ngram=dict.fromkeys(range(1, 21), 0.5))
    assert good.invalid == "" and good.ratio == pytest.approx(0.12) and good.total == pytest.approx(11.2)
    assert good.ngram == pytest.approx(1.0) and good.overshoot == pytest.approx(0.55)
    assert "not reached its floor" in far_numbers(curve | {20: 0.3}, 10, floor, ceiling).invalid
    assert far_numbers({d: v for d, v in curve.items() if d != 14}, 10, floor, ceiling).invalid == (
        "distance 14 was not evaluated"
    )
    assert "no distance beyond" in far_numbers(curve, 20, floor, ceiling).invalid
    assert "no distance up to the end" in far_numbers({d: curve[d] for d in range(11, 21)}, 10, floor, ceiling).invalid
    assert "accuracy is 0 up to" in far_numbers(dict.fromkeys(curve, 0.0), 10, floor, ceiling).invalid
    with pytest.raises(ValueError, match="no distance"):
        far_numbers({}, 10, floor, ceiling)


def test_p_needs_every_distance_from_one_on():
    """A distance that is left out of the sum is no zero: which one, near or far, makes no difference."""
    floor, ceiling = dict.fromkeys(range(31), 0.1), dict.fromkeys(range(31), 1.0)
    curve = {d: 1.0 if d <= 10 else 0.12 for d in range(21)}
    assert far_numbers(curve, 10, floor, ceiling).invalid == "", "from 0 on"
    for missing in range(1, 21):
        holes = [curve | {missing: None}] + [{d: v for d, v in curve.items() if d != missing}] * (missing < 20)
        for hole in holes:
            found = far_numbers(hole, 10, floor, ceiling)
            assert found.invalid == f"distance {missing} was not evaluated"
            assert found.total == pytest.approx(sum(v for d, v in hole.items() if d and v is not None))
    assert far_numbers({d: v for d, v in curve.items() if d > 3}, 10, floor, ceiling).invalid.startswith("3 distances")
    assert far_numbers(curve | dict.fromkeys(range(21, 26)), 10, floor, ceiling).invalid.startswith("5 distances")


def test_where_there_is_no_p_it_is_said_why():
    rng = np.random.default_rng(4)
    floor, ceiling = dict.fromkeys(range(9), 0.1), dict.fromkeys(range(9), 1.0)
    for _ in range(300):
        asked = rng.choice(9, size=rng.integers(1, 9), replace=False).tolist()
        curve = {d: [None, 0.0, 0.1, 1.0][rng.integers(4)] for d in asked}
        if any(d and v is not None for d, v in curve.items()):
            found = far_numbers(curve, int(rng.integers(9)), floor, ceiling)
            assert found.ratio is not None or found.invalid


def test_numbers_that_are_none_are_not_solved_and_not_summed():
    nan = float("nan")
    assert max_solved([(4, 0.95), (8, nan), (16, 0.99)]) == 4
    assert max_solved([(4, 0.95), (4, nan)]) is None and max_solved([(4, nan), (4, 0.95)]) is None
    good = {1: 1.0, 2: 0.5}
    for place in range(4):
        curves = [dict(good) for _ in range(4)]
        curves[place][2] = nan
        with pytest.raises(ValueError, match="at distance 2 is nan; it must be a finite number"):
            far_numbers(curves[0], 1, *curves[1:])
    with pytest.raises(ValueError, match="not a number"):
        bootstrap_ratio(np.array([1.0, nan]), np.array([1, 1]))
