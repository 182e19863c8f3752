"""Values that can't be are refused before a model is built, over every hyper-parameter of every component."""

import inspect
import math

import pytest
import torch

from hf_posgen.model.component import hyperparameters, resolve
from hf_posgen.model.configuration_posgen import PosGenConfig
from hf_posgen.model.encoding_registry import ENCODINGS, register
from hf_posgen.model.logit_scale import LOGIT_SCALES
from hf_posgen.model.mixer_registry import MIXERS
from hf_posgen.model.modeling_posgen import PosGenForCausalLM
from hf_posgen.model.position_encoding import PositionEncoding
from hf_posgen.model.position_sampler import SAMPLERS

REGISTRIES = {
    "position_encoding": ENCODINGS,
    "position_sampler": SAMPLERS,
    "logit_scale": LOGIT_SCALES,
    "mixer": MIXERS,
}
EVERY = [
    (field, name, key)
    for field, registry in REGISTRIES.items()
    for name, cls in registry.items()
    for key in hyperparameters(cls)
]
every_hyperparameter = pytest.mark.parametrize(("field", "name", "key"), EVERY, ids=lambda word: word)
NEVER = [math.nan, math.inf, -math.inf, "nan", "inf", "nope", -(10**15), 10**16, -1e300, 1e300, {}, [-1], [math.nan]]


def model(**fields):
    if fields.get("mixer") is not None and "position_encoding" not in fields:
        fields["position_encoding"] = "none"
    return PosGenForCausalLM(PosGenConfig(hidden_size=16, num_attention_heads=2, max_position_embeddings=8, **fields))


@every_hyperparameter
def test_impossible_values_are_refused_in_a_sentence(field, name, key):
    switch = isinstance(hyperparameters(REGISTRIES[field][name])[key], bool)
    for value in NEVER + ([0, 1, 2.5] if switch else [True, False]):
        with pytest.raises(ValueError, match=f"{name}.*{key} is .*; it must be ") as error:
            resolve({"name": name, key: value}, REGISTRIES[field], field)
        assert repr(value) in str(error.value)


@every_hyperparameter
@torch.no_grad()
def test_a_value_is_refused_or_gives_finite_logits(field, name, key):
    """Small, odd and edge values: whatever passes runs."""
    default = hyperparameters(REGISTRIES[field][name])[key]
    for value in (-1, 0, 1e-12, 0.5, 1, 1.0001, 2, 3, 2.5, "1e1", "7", None):
        try:
            built = model(**{field: {"name": name, key: value}}).eval()
        except ValueError as error:
            assert key in str(error) or "rotates" in str(error), str(error)
            continue
        assert not isinstance(getattr(built.config, field)[key], str) or isinstance(default, str), (
            "text read as a number"
        )
        sampled = field == "position_sampler"  # one token: a sampler may have no room for more
        row = torch.ones(1, 1 if sampled else 12, dtype=torch.long)
        built.config.out_of_range = "wrap"
        assert torch.isfinite(built.train(sampled)(row, use_cache=False).logits).all(), f"{key} = {value!r}"


@every_hyperparameter
def test_every_hyperparameter_says_its_type_and_bounds(field, name, key):
    annotation = inspect.signature(REGISTRIES[field][name].__init__).parameters[key].annotation
    assert annotation is bool or any(mark in str(annotation) for mark in ("Bounds", "Literal")), annotation


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"name": "rope", "base": -1},
            r"position_encoding 'rope': base is -1; it must be a finite number above 1 up to",
        ),
        ({"name": "rope", "base": True}, "base is True; it must be a finite number"),
        ({"name": "rope_yarn", "factor": 0}, "factor is 0; it must be a finite number from 1 up to"),
        ({"name": "fire", "width": 0}, "width is 0; it must be a whole number from 1 up to"),
        ({"name": "t5", "buckets": 2.5}, "buckets is 2.5; it must be a whole number from 2 up to"),
        ({"name": "alibi", "slopes": "steep"}, "slopes is 'steep'; .*allowed: paper, geometric, learned"),
        (
            {"name": "rope_longrope", "long_factor": [1.0, -2.0]},
            "long_factor is .*; it must be a list, each item a finite",
        ),
        ({"name": "rope_llama3", "low_freq_factor": 8.0}, "high_freq_factor 4.0 must be above low_freq_factor 8.0"),
        ({"name": "kerple", "form": "power", "r2": 2.0}, "r2 is 2.0; it must be below 2"),
    ],
    ids=str,
)
def test_sentences(spec, sentence):
    with pytest.raises(ValueError, match=sentence):
        model(position_encoding=spec)


def test_numbers_written_as_text_are_numbers():
    built = model(position_encoding={"name": "rope", "base": "1e6"})
    assert built.config.position_encoding["base"] == 1e6
    assert resolve({"name": "t5", "buckets": "8"}, ENCODINGS, "position_encoding")["buckets"] == 8
    assert resolve({"name": "rope", "base": 500}, ENCODINGS, "position_encoding")["base"] == 500


def test_somebody_elses_hyperparameters_may_have_any_type():
    class Shaped(PositionEncoding):
        """Has no annotations, or others."""

        def __init__(self, config, *, plain=3, shape: dict | None = None, tuned: float = 1.0):
            super().__init__(config)

    register("shaped", Shaped)
    try:
        spec = {"name": "shaped", "plain": "x", "shape": {"a": 1}, "tuned": 2}
        assert resolve(spec, ENCODINGS, "position_encoding") == spec
        with pytest.raises(ValueError, match="tuned is nan; it must be a finite number"):
            resolve(spec | {"tuned": math.nan}, ENCODINGS, "position_encoding")
    finally:
        ENCODINGS.pop("shaped")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"hidden_act": "nope"}, "hidden_act is 'nope'; allowed: .*gelu"),
        ({"pad_token_id": 32}, "pad_token_id is 32; it must be from 0 to 31"),
        ({"pad_token_id": -1}, "pad_token_id is -1"),
        ({"hidden_dropout": 1.0}, "hidden_dropout is 1.0"),
        ({"norm_eps": 0.0}, "norm_eps is 0.0"),
    ],
    ids=str,
)
def test_fields_of_the_config(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        PosGenConfig(**fields)
