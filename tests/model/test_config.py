"""The config refuses what can't be, and keeps every effective value."""

import pytest
import torch

from hf_posgen.model.configuration_posgen import PosGenConfig
from hf_posgen.model.encoding_registry import ENCODINGS, register
from hf_posgen.model.modeling_posgen import PosGenForCausalLM
from hf_posgen.model.position_encoding import PositionEncoding

from .helpers import SPECS, spec_id, tiny


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"position_encodng": "rope"}, ["position_encodng", "did you mean 'position_encoding'"]),
        ({"num_attention_head": 4}, ["num_attention_head", "'num_attention_heads'"]),
        ({"hidden_size": 30}, ["hidden_size 30", "num_attention_heads 4"]),
        ({"num_key_value_heads": 3}, ["num_attention_heads 4", "num_key_value_heads 3"]),
        ({"norm": "batchnorm"}, ["batchnorm", "layernorm, rmsnorm, none"]),
        ({"mlp": "wide"}, ["wide", "plain, gated, none"]),
        ({"out_of_range": "ignore"}, ["ignore", "error, clamp, wrap"]),
        ({"num_hidden_layers": 0}, ["num_hidden_layers is 0"]),
        ({"position_encoding": {"base": 3.0}}, ["position_encoding", "'name'"]),
    ],
)
def test_refused_at_construction(fields, words):
    with pytest.raises(ValueError) as error:
        PosGenConfig(**{"hidden_size": 32, "num_attention_heads": 4} | fields)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "spec, words",
    [
        ("ropee", ["unknown position_encoding 'ropee'", "did you mean 'rope'", "alibi"]),
        ({"name": "rope", "bas": 3.0}, ["'bas'", "did you mean 'base'", "grid"]),
        ({"name": "alibi", "slopes": "steep"}, ["steep", "paper, geometric, learned"]),
        ({"name": "rope", "share": 0.4}, ["head_dim 8", "share 0.4", "3 channels"]),
        ({"name": "rope_longrope", "long_factor": [1.0]}, ["long_factor lists 1", "4 frequencies"]),
    ],
)
def test_refused_when_the_model_is_built(spec, words):
    with pytest.raises(ValueError) as error:
        tiny(spec)
    for word in words:
        assert word in str(error.value)


def test_odd_head_size_with_rope():
    with pytest.raises(ValueError, match="head_dim 9 .* rotates 9 channels"):
        tiny("rope", head_dim=9)


@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
def test_round_trip_keeps_every_effective_value(spec, tmp_path):
    config = tiny(spec).config
    config.save_pretrained(tmp_path)
    again = PosGenConfig.from_pretrained(tmp_path)
    for name in ("position_encoding", "position_sampler", "logit_scale", "mixer"):
        assert getattr(again, name) == getattr(config, name)
    from hf_posgen.model.component import hyperparameters

    effective = hyperparameters(ENCODINGS[config.position_encoding["name"]])
    assert set(config.position_encoding) == {"name", *effective}


def test_two_configs_do_not_share_a_spec():
    spec = {"name": "rope", "base": 10.0}
    first, second = PosGenConfig(position_encoding=spec), PosGenConfig(position_encoding=spec)
    first.position_encoding["base"] = 20.0
    assert second.position_encoding["base"] == spec["base"] == 10.0


def test_a_newer_checkpoint_warns(caplog):
    import logging

    logger = logging.getLogger("hf_posgen.model.configuration_posgen")
    logger.addHandler(caplog.handler)
    PosGenConfig(posgen_version="99.0.0")
    assert "99.0.0" in caplog.text


def test_the_packages_version_is_the_configs():
    import hf_posgen

    assert PosGenConfig().posgen_version == hf_posgen.__version__


@pytest.mark.parametrize("implementation", ["flash_attention_2", "paged|sdpa"])
def test_other_attention_implementations_are_refused(implementation):
    model = tiny("rope")
    model.config._attn_implementation_internal = implementation
    with pytest.raises(ValueError, match="allowed: eager, sdpa, flex_attention"):
        model(torch.ones(1, 4, dtype=torch.long))


@pytest.mark.parametrize("name", ["fire", "cope"])
def test_flex_attention_is_refused_for_a_pairwise_bias_at_construction(name):
    config = tiny(name).config
    config._attn_implementation = "flex_attention"
    with pytest.raises(ValueError, match="does not carry a pairwise bias; allowed: eager, sdpa"):
        PosGenForCausalLM(config)


class Recency(PositionEncoding):
    """Adds -rate · log(1 + distance) to every head."""

    def __init__(self, config, *, rate: float = 1.0):
        super().__init__(config)
        self.rate = rate

    def bias(self, queries, keys):
        from hf_posgen.model.attention_bias import ByDistance

        heads = self.config.num_attention_heads
        return ByDistance(lambda d: (-self.rate * d.to(queries.dtype).log1p()).expand(heads, *d.shape))


def test_someone_elses_encoding_registers_at_run_time():
    try:
        register("recency", Recency)
        register("recency", Recency)
        model = tiny({"name": "recency", "rate": 2.0})
        assert model.config.position_encoding == {"name": "recency", "rate": 2.0}
        with pytest.raises(ValueError, match="taken by Recency"):
            register("recency", ENCODINGS["rope"])
        with pytest.raises(ValueError, match="no subclass"):
            register("other", dict)
    finally:
        ENCODINGS.pop("recency", None)


def test_the_capability_table_knows_what_the_papers_say():
    from hf_posgen.model.capabilities import capabilities

    table = {row["encoding"]: row for row in capabilities()}
    assert set(table) == set(ENCODINGS)
    assert all(row["causal"] != ENCODINGS[name].depends_on_length for name, row in table.items())
    invariant = {name: row["shift-invariant"] for name, row in table.items()}
    for name in ("learned", "sinusoidal", "fire", "rope_dynamic_ntk", "rope_longrope"):
        assert not invariant[name], f"{name} reads absolute positions"
    for name in (
        "none",
        "rope",
        "rope_yarn",
        "xpos",
        "rove",
        "alibi",
        "t5",
        "kerple",
        "shaw",
        "cope",
        "forgetting_gate",
    ):
        assert invariant[name], f"{name} reads distances alone"
    assert table["alibi"]["bias"] == "columns" and table["t5"]["bias"] == "by distance"
    assert table["cope"]["memory"] == "L × chunk" and "flex_attention" not in table["cope"]["kernels"]
    assert table["learned"]["parameters"] == 32 * 32 and table["rope"]["parameters"] == 0
