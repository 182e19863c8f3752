import torch

from hf_posgen.analysis import pinning
from tests.analysis.by_hand import ONE, clipped_solution, context


def test_a_head_built_to_look_at_position_five_is_pinned_there():
    made = context("learned")
    with torch.no_grad():
        made.model.model.position_encoding.weight[5, 60] = 9.0
        attention = made.model.model.layers[0].self_attn
        attention.k_proj.weight[0, 60] = attention.q_proj.weight[0, ONE] = 3.0
    for entry in pinning.measure(made)["heads"]:
        assert entry["in_range"] == 1 and entry["right"] == 0
        assert (entry["modal_index"], entry["modal_share"]) == (5, 1.0)
        assert entry["null"] == 16 / entry["length"]


def test_a_head_that_looks_k_back_is_not():
    for entry in pinning.measure(clipped_solution())["heads"]:
        assert entry["right"] == 1 and entry["in_range"] == 0
        assert entry["modal_index"] == entry["length"] - 4


def test_a_query_put_back_in_range_finds_what_its_row_was_trained_for():
    """Query row 15 looks for key row 12; rows beyond the training range look for nothing."""
    made = context("learned")
    with torch.no_grad():
        table = made.model.model.position_encoding.weight
        table[15, 60], table[12, 61] = 9.0, 9.0
        attention = made.model.model.layers[0].self_attn
        attention.q_proj.weight[0, 60] = attention.k_proj.weight[0, 61] = 3.0
    for entry in pinning.measure(made)["heads"]:
        assert entry["query_in_range"]["right"] == 1
        assert entry["right"] == 0
