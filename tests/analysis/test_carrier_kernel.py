import pytest
import torch

from hf_posgen.analysis import carrier_kernel
from hf_posgen.analysis.context import NotApplicable
from hf_posgen.analysis.kernel import frequency_parts, mean_kernel, pair_kernels, rank_one_share
from tests.analysis.by_hand import carrier_solution, clipped_solution, context


@pytest.mark.parametrize("offset", [1, 3, 7])
def test_a_kernel_built_to_peak_at_the_offset_does(offset):
    head = carrier_kernel.measure(carrier_solution(offset))["heads"][0]
    assert head["peak"] == offset
    assert head["margin"] == pytest.approx(head["margin_at_offset"]) and head["margin"] > 0
    assert head["alignment"] == pytest.approx(1, abs=1e-6)
    assert head["rank_one"] == pytest.approx(1, abs=1e-6)
    assert head["energy"] == pytest.approx([1 / 32] * 32, rel=1e-4)
    assert head["shift_error"] < 1e-5


def test_one_frequency_repeats_and_its_alias_is_found():
    """cos(δ - 3) comes back after 2π · 7 = 43.98 tokens: the alias stands at 47."""
    head = carrier_kernel.measure(carrier_solution(3, [0]))["heads"][0]
    kernel = torch.tensor(head["kernel"])
    torch.testing.assert_close(kernel, 0.5 * torch.cos(torch.arange(128.0) - 3), atol=1e-4, rtol=0)
    assert head["alias"] == 47
    assert head["alias_gap"] == pytest.approx(0.5 * (1 - torch.cos(torch.tensor(44.0)).item()), abs=1e-4)


def test_a_bias_by_distance_is_part_of_the_kernel():
    head = carrier_kernel.measure(clipped_solution(offset=5, height=2.0))["heads"][0]
    assert head["peak"] == 5 and head["margin"] == pytest.approx(2.0) and head["alias_gap"] == pytest.approx(2.0)
    assert "alignment" not in head


def test_the_frequency_parts_sum_to_the_kernel():
    made = context("rope")
    torch.nn.init.normal_(made.model.model.layers[0].self_attn.q_proj.weight)
    torch.nn.init.normal_(made.model.model.layers[0].self_attn.k_proj.weight)
    theta, parts = frequency_parts(made.model, 16)
    waves = torch.exp(1j * theta[:, None] * torch.arange(20))
    torch.testing.assert_close((parts @ waves).real.float(), pair_kernels(made.model, 16, 19), atol=1e-4, rtol=1e-4)


def test_the_mean_kernel_counts_the_pairs_that_occur():
    """A query meets itself at offset 0 and no other token there: what its logit would be with another says nothing."""
    kernels = torch.randn(2, 5, 5, 7, generator=torch.Generator().manual_seed(0))
    mean = mean_kernel(kernels)
    for head in range(2):
        for offset in range(7):
            pairs = [(c, d) for c in range(5) for d in range(5) if offset > 0 or c == d]
            expected = sum(float(kernels[head, c, d, offset]) for c, d in pairs) / len(pairs)
            assert float(mean[head, offset]) == pytest.approx(expected, abs=1e-6)


def test_rank_one_share_of_known_matrices():
    base = torch.tensor([1.0, -1.0, 2.0, -2.0])
    one = torch.arange(1.0, 10).view(1, 3, 3, 1) * base
    assert rank_one_share(one, centred=True) == pytest.approx(1)
    two = torch.stack([torch.tensor([1.0, -1, 0, 0]), torch.tensor([0.0, 0, 1, -1])]).view(1, 1, 2, 4)
    assert rank_one_share(two, centred=True) == pytest.approx(0.5)


def test_a_logit_that_depends_on_what_stands_between_is_refused():
    with pytest.raises(NotApplicable, match="between"):
        carrier_kernel.measure(context("cope"))


@pytest.mark.parametrize(
    "mixer", [{"name": "linear"}, {"name": "linear", "feature_map": "identity", "normalized": False}]
)
def test_linear_attentions_kernel_weighs_its_values(mixer):
    """Its output at the last place is Σ κ v, over Σ of the unturned features' products where it is normalised."""
    made = context("rope", mixer=mixer)
    attention = made.model.model.layers[0].self_attn
    torch.nn.init.normal_(attention.q_proj.weight)
    torch.nn.init.normal_(attention.k_proj.weight)
    tokens, _ = made.sequences(17, 5)
    kernel = pair_kernels(made.model, 16, 16)[0]
    weights = kernel[tokens[:, -1:], tokens, torch.arange(16, -1, -1)]
    if mixer.get("feature_map") is None:
        embedded = made.model.model.embed_tokens(tokens)
        q, k = (torch.nn.functional.elu(p(embedded)) + 1 for p in (attention.q_proj, attention.k_proj))
        weights = weights / torch.einsum("bk,bmk->b", q[:, -1], k)[:, None]
    expected = torch.einsum("bm,bmv->bv", weights, torch.nn.functional.one_hot(tokens, 16).float())
    hidden = made.model.model(input_ids=tokens).last_hidden_state[:, -1, 32:48]
    torch.testing.assert_close(hidden, expected, atol=1e-3, rtol=1e-3)
