import math

import pytest
import torch

from hf_posgen.analysis import dilution
from hf_posgen.analysis.context import NotApplicable
from hf_posgen.analysis.dilution import last_prediction
from tests.analysis.by_hand import carrier_solution, clipped_solution, context


def test_a_flat_rest_follows_the_law_exactly():
    """With logits 8 at k and 0 elsewhere, α(L) = 1 / (1 + e^-8 (L - 1)) at every length."""
    result = dilution.measure(clipped_solution(height=8.0), sequences=64)
    assert result["c_inside"] == pytest.approx(math.exp(-8), rel=1e-3)
    assert result["c_beyond"] == pytest.approx(math.exp(-8), rel=1e-3)
    assert result["r2_inside"] == pytest.approx(1, abs=1e-4) and result["r2_frozen"] == pytest.approx(1, abs=1e-4)
    assert result["alpha"] == pytest.approx(result["alpha_law"], rel=1e-4)
    assert set(result["largest_error"].values()) == {0.0}


def test_a_weak_peak_dilutes_and_c_alone_predicts_the_loss():
    result = dilution.measure(clipped_solution(height=2.0), sequences=256)
    measured = result["accuracy"]["measured"]
    assert measured[0] > 0.9 and measured[-1] < 0.75
    assert result["largest_error"]["c_alone"] <= 0.01


def test_an_alias_breaks_the_prediction_from_c_alone_but_not_the_full_kernel():
    result = dilution.measure(carrier_solution(3, [0], height=40.0), sequences=256)
    assert result["largest_error"]["full_kernel"] == 0
    assert result["largest_error"]["c_alone"] > 0.2


def test_the_measured_accuracy_is_the_models():
    made = clipped_solution(height=2.0)
    tokens, answers = made.sequences(48)
    view = made.view_of(tokens)
    ours = last_prediction(made.model, view, view.last_logits()[:, 0].softmax(-1))
    assert torch.equal(ours, made.model(input_ids=tokens).logits[:, -1].argmax(-1))


def test_two_layers_are_refused():
    with pytest.raises(NotApplicable, match="one layer"):
        dilution.measure(context("rope", num_hidden_layers=2))
