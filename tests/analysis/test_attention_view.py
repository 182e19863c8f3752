import pytest
import torch

from hf_posgen.analysis.attention_view import attention_views
from tests.model.helpers import tiny, tokens

ENCODINGS = ["rope", "alibi", "t5", "fire", "learned", "cope", "fox", "shaw", "rove"]


def known(names):
    from hf_posgen.model.encoding_registry import ENCODINGS as registry

    return [name for name in names if name in registry]


@pytest.mark.parametrize("name", known(ENCODINGS))
def test_its_weights_are_the_models_own(name):
    model = tiny(name)
    ids = tokens(3, 11)
    views = attention_views(model, ids)
    model.set_attn_implementation("eager")
    attentions = model(input_ids=ids, output_attentions=True).attentions
    assert len(views) == len(attentions) == 2
    for view, weights in zip(views, attentions, strict=True):
        parts = [view.logits(start, stop).softmax(-1) for start, stop in view.chunks(4)]
        torch.testing.assert_close(torch.cat(parts, 2), weights, rtol=1e-4, atol=1e-6)


def test_positions_reach_it():
    model, ids = tiny("learned"), tokens(2, 6)
    plain = attention_views(model, ids)[0].last_logits()
    moved = attention_views(model, ids, positions=torch.arange(6)[None] + 5)[0].last_logits()
    assert (plain - moved).abs().max() > 1e-3


def test_it_leaves_no_hooks_behind():
    model = tiny()
    attention_views(model, tokens(1, 4))
    assert all(not module._forward_pre_hooks for module in model.modules())
    assert model(input_ids=tokens(1, 4)).logits.shape == (1, 4, 13)
