"""Weights that lie elsewhere until a module is called: on the CPU or on disk, brought by Accelerate's hooks."""

import copy

import pytest
import torch
from accelerate import cpu_offload, disk_offload
from transformers import AutoModelForCausalLM, DynamicCache

from hf_posgen.model.encoding_registry import register
from hf_posgen.model.logit_scale import LOGIT_SCALES

from .helpers import SPECS, spec_id, tiny, tokens
from .test_mixers import ARMS, build

L = 10
every_encoding = pytest.mark.parametrize("spec", SPECS, ids=spec_id)


def assert_same(offloaded, model):
    """Whole passes by both kernels, and cached decoding."""
    row = tokens(2, L)
    for implementation in ("eager", "sdpa"):
        for m in (model, offloaded):
            m.set_attn_implementation(implementation)
        torch.testing.assert_close(offloaded(row, use_cache=False).logits, model(row, use_cache=False).logits)
    caches = [DynamicCache(config=m.config) for m in (offloaded, model)]
    for chunk in row.split([4, 1, 5], dim=1):
        actual, expected = (
            m(chunk, cache=cache, use_cache=True).logits for m, cache in zip((offloaded, model), caches, strict=True)
        )
        torch.testing.assert_close(actual, expected)


@every_encoding
@torch.no_grad()
def test_offloaded_to_the_cpu(spec, tmp_path):
    model = tiny(spec)
    offloaded = cpu_offload(copy.deepcopy(model), execution_device=torch.device("cpu"))
    assert all(p.is_meta for p in offloaded.parameters()), "else nothing was offloaded"
    assert_same(offloaded, model)
    assert all(p.is_meta for p in offloaded.parameters())


@every_encoding
@torch.no_grad()
def test_offloaded_to_the_disk(spec, tmp_path):
    model = tiny(spec)
    assert_same(disk_offload(copy.deepcopy(model), tmp_path, execution_device=torch.device("cpu")), model)


@pytest.mark.parametrize("name", ["learned", "t5", "fire", "cope", "dape", "shaw", "selective_rope"])
@torch.no_grad()
def test_opened_with_a_device_map(name, tmp_path):
    model = tiny(name)
    model.save_pretrained(tmp_path / "model")
    device_map = {"model.embed_tokens": "cpu", "model.layers": "disk", "model.norm": "disk", "lm_head": "cpu"}
    if model.model.position_encoding is not None:
        device_map["model.position_encoding"] = "disk"
    opened = AutoModelForCausalLM.from_pretrained(
        tmp_path / "model", device_map=device_map, offload_folder=tmp_path / "offload"
    )
    assert_same(opened, model)


@pytest.mark.parametrize("arm", ARMS)
@torch.no_grad()
def test_every_mixer_offloaded(arm):
    model = build(arm)
    assert_same(cpu_offload(copy.deepcopy(model), execution_device=torch.device("cpu")), model)


@pytest.mark.parametrize("scale", LOGIT_SCALES)
@torch.no_grad()
def test_every_logit_scale_offloaded(scale):
    model = tiny("alibi", logit_scale=scale)
    assert_same(cpu_offload(copy.deepcopy(model), execution_device=torch.device("cpu")), model)


@torch.no_grad()
def test_somebody_elses_encoding_that_reads_its_weights_late():
    from hf_posgen.model.attention_bias import Pairwise
    from hf_posgen.model.encoding_registry import ENCODINGS
    from hf_posgen.model.position_encoding import PositionEncoding

    class Late(PositionEncoding):
        """A trained number per head, times the distance."""

        def __init__(self, config):
            super().__init__(config)
            self.rate = torch.nn.Parameter(torch.ones(config.num_attention_heads))

        def bias(self, queries, keys):
            return Pairwise(lambda rows: -self.rate[None, :, None, None] * rows.distances()[:, None])

    register("late", Late)
    try:
        model = tiny("late")
        assert_same(cpu_offload(copy.deepcopy(model), execution_device=torch.device("cpu")), model)
    finally:
        ENCODINGS.pop("late")
