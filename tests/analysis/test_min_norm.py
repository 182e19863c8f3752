import pytest
import torch

from hf_posgen.analysis import min_norm
from hf_posgen.analysis.min_norm import features, interpolant
from tests.analysis.by_hand import carrier_solution

COMPLETE = 2 * torch.pi * torch.arange(16, dtype=torch.float64) / 16  # all frequencies of 16 points


def test_on_a_complete_grid_it_is_a_delta_with_the_grids_period():
    """The Fourier basis of 16 points: a pulse at k, again at k + 16, of norm 1 / √16."""
    found = interpolant(COMPLETE, k=3, seen=16, cutoff=1e-10)
    assert found["residual"] < 1e-12 and found["kept"] == 16
    assert found["norm"] == pytest.approx(0.25)
    curve = features(COMPLETE, torch.arange(32)) @ found["coefficients"]
    pulse = torch.zeros(32, dtype=torch.float64)
    pulse[[3, 19]] = 1
    torch.testing.assert_close(curve, pulse, atol=1e-12, rtol=0)


def test_a_cutoff_trades_norm_for_residual():
    frequencies = torch.arange(32, 0, -1, dtype=torch.float64) / 32
    exact, rough = (interpolant(frequencies, 3, 16, cutoff) for cutoff in (1e-14, 1e-2))
    assert exact["norm"] > 1e4 * rough["norm"]
    assert exact["residual"] < 1e-6 < rough["residual"]


def test_the_grid_decides_whether_it_extrapolates():
    grids = min_norm.measure(carrier_solution())["grids"]
    exact = {name: grid["by_cutoff"][0] for name, grid in grids.items()}
    assert exact["geometric"]["norm"] > 1e6 and exact["geometric"]["picks_k_up_to"] < 20
    assert exact["full_band"]["norm"] < 1 and exact["full_band"]["picks_k_up_to"] >= 48
    assert exact["own"]["norm"] == pytest.approx(exact["geometric"]["norm"], rel=0.5)


def test_the_learned_kernel_correlates_with_itself():
    kernel = torch.randn(20, dtype=torch.float64)
    assert min_norm.correlation(kernel, 3 * kernel + 1) == pytest.approx(1)
    assert min_norm.correlation(kernel, torch.ones(20, dtype=torch.float64)) is None
