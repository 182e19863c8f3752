import pytest
import torch

from hf_posgen.analysis import equivariance
from tests.analysis.by_hand import carrier_solution, context
from tests.model.helpers import tiny, tokens


@pytest.mark.parametrize("name", ["rope", "t5", "none"])
def test_relative_encodings_pass_to_a_hundred_thousand(name):
    errors = equivariance.shift_errors(tiny(name), tokens(2, 12))
    assert max(errors) <= equivariance.TOLERANCE


def test_alibi_is_equivariant_and_only_rounds_in_float32():
    """Its slope · position grows with the position, so that float32 keeps fewer digits of the difference."""
    single, double = tiny("alibi"), tiny("alibi").double()
    assert max(equivariance.shift_errors(single, tokens(2, 12))[:4]) <= equivariance.TOLERANCE
    assert max(equivariance.shift_errors(double, tokens(2, 12))) <= 1e-10


def test_double_precision_tells_rounding_from_a_real_change():
    result = equivariance.measure(carrier_solution())
    assert result["equivariant"]
    assert max(result["float64"]) < 1e-9


def test_absolute_positions_fail_and_have_no_value_past_their_table():
    made = context("learned")
    torch.nn.init.normal_(made.model.model.position_encoding.weight)
    torch.nn.init.normal_(made.model.lm_head.weight)
    result = equivariance.measure(made)
    assert not result["equivariant"]
    assert result["float32"][0] > 0.1 and result["float32"][-1] is None
