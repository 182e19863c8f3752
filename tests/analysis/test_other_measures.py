"""Attention spread, effective rank, head scores, frequency use, probes: each on a case with a known answer."""

import math

import pytest
import torch

from hf_posgen.analysis import attention_spread, effective_rank, frequency_use, head_scores, probes
from hf_posgen.analysis.context import NotApplicable
from tests.analysis.by_hand import ONE, SYMBOLS, carrier_solution, clipped_solution, constant_query_and_key, context


def test_even_attention_has_the_entropy_of_a_uniform_draw():
    for entry in attention_spread.measure(context("none"))["heads"]:
        length = entry["length"]
        assert entry["relative_entropy"] == pytest.approx(1, abs=1e-5)
        assert entry["entropy"] == pytest.approx(sum(map(math.log, range(2, length + 1))) / (length - 1), rel=1e-4)
        assert sum(entry["mass"]) == pytest.approx(1, abs=1e-4)
        assert entry["mass"][0] == pytest.approx(sum(1 / n for n in range(2, length + 1)) / (length - 1), rel=1e-4)


def test_a_sharp_head_has_its_mass_at_its_distance():
    result = attention_spread.measure(clipped_solution(offset=3, height=30.0))
    entry = result["heads"][-1]
    assert entry["mass"][result["bands"].index("2-3")] > 0.97
    assert entry["entropy"] < 0.1


def test_effective_rank_of_known_products():
    made = context("none")
    attention = made.model.model.layers[0].self_attn
    with torch.no_grad():
        attention.q_proj.weight.copy_(torch.eye(64))
        attention.k_proj.weight.copy_(torch.eye(64))
        assert effective_rank.ranks(attention)["effective_rank"] == pytest.approx(64)
        attention.k_proj.weight.zero_()
        attention.k_proj.weight[0, 0] = 2.0
        entry = effective_rank.measure(made)["heads"][0]
    assert entry["effective_rank"] == pytest.approx(1) and entry["first_share"] == pytest.approx(1)


def test_a_head_of_positions_alone_is_positional():
    for entry in head_scores.measure(clipped_solution())["heads"]:
        assert entry["positional"] == pytest.approx(1, abs=1e-4)
        assert entry["symbolic"] < 0.6


def test_a_head_of_contents_alone_is_symbolic():
    made = context("none")
    with torch.no_grad():
        attention = made.model.model.layers[0].self_attn
        attention.q_proj.weight[0, ONE] = 1.0
        attention.k_proj.weight[0, :SYMBOLS] = 5 * torch.arange(SYMBOLS)
    for entry in head_scores.measure(made)["heads"]:
        assert entry["symbolic"] == pytest.approx(1, abs=1e-4)
        assert entry["positional"] < 0.6


def test_frequency_use_finds_the_pair_that_was_filled():
    made = context("rope")
    query = torch.zeros(64)
    query[5], query[5 + 32] = 3.0, 4.0
    constant_query_and_key(made.model, query, 2 * query)
    entry = frequency_use.measure(made)["heads"][0]
    assert entry["query"][5] == pytest.approx(5) and entry["key"][5] == pytest.approx(10)
    assert sum(entry["query"]) == pytest.approx(5)
    with pytest.raises(NotApplicable, match="fixed frequencies"):
        frequency_use.measure(context("alibi"))


def test_probes_of_a_head_that_looks_three_back():
    accuracy = probes.measure(clipped_solution(height=12.0))["accuracy"]["16"]
    for name in ("as_trained", "shift_16", "shift_1000", "freeze", "only_target", "window"):
        assert accuracy[name] == 1.0, name
    for name in ("stretch_2", "shuffle", "drop"):
        assert accuracy[name] < 0.5, name


def test_hiding_the_distractors_undoes_dilution():
    accuracy = probes.measure(clipped_solution(height=1.0))["accuracy"]["128"]
    assert accuracy["as_trained"] < 0.5 and accuracy["only_target"] == 1.0


def test_only_the_fastest_frequencies_turn_and_all_come_back():
    encoding = carrier_solution().model.model.position_encoding
    before = encoding.frequencies()
    with probes.fastest_only(encoding, 0.25):
        assert torch.equal(encoding.frequencies()[:8], before[:8]) and not encoding.frequencies()[8:].any()
    assert torch.equal(encoding.frequencies(), before)
