"""`PosGenConfig`: every choice that shapes a model, by Hugging Face's names where they exist."""

import copy
import dataclasses
import difflib
import math

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig
from transformers.activations import ACT2FN
from transformers.utils import logging

logger = logging.get_logger(__name__)

POSGEN_VERSION = "0.1.0"

# The fields that name a component: a name, a dict {"name": ..., **hyperparameters}, or a list with one per layer.
COMPONENTS = ("position_encoding", "position_sampler", "logit_scale", "mixer")
PER_LAYER = ("position_encoding", "logit_scale", "mixer")

Spec = str | dict | list


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


@strict
class PosGenConfig(PreTrainedConfig):
    """A GPT-style decoder whose positional encoding is one field.

    Sizes are in units (neurons, heads, tokens); `max_position_embeddings` is the number of rows of a learned table and
    the original length of the RoPE scalings. `head_dim` defaults to `hidden_size / num_attention_heads`,
    `intermediate_size` to four times `hidden_size`, `num_key_value_heads` to `num_attention_heads`, and
    `embedding_initializer_range` (the standard deviation of token embeddings) to `initializer_range`.

    `position_encoding`, `position_sampler`, `logit_scale` and `mixer` are specs (see `COMPONENTS`); building a model
    completes them, so that a saved config holds every effective value. `out_of_range` says what a learned table does
    past its end: "error", "clamp" (its last row) or "wrap" (position modulo size).

    Raises `ValueError` for sizes that don't divide, a spec without a name, a list of the wrong length, and for a keyword
    that looks like a misspelt field.
    """

    model_type = "posgen"
    keys_to_ignore_at_inference = ["cache"]

    vocab_size: int = 32
    hidden_size: int = 128
    intermediate_size: int | None = None
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "gelu"
    max_position_embeddings: int = 256
    attention_dropout: float | int = 0.0
    hidden_dropout: float | int = 0.0
    initializer_range: float = 0.02
    embedding_initializer_range: float | int | None = None
    tie_word_embeddings: bool = False
    use_cache: bool = True
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    pad_token_id: int | None = None
    norm: str = "layernorm"
    norm_eps: float = 1e-5
    mlp: str = "plain"
    attention_bias: bool = False
    mlp_bias: bool = False
    position_encoding: str | dict | list = "rope"
    position_sampler: str | dict | list = "sequential"
    logit_scale: str | dict | list = "none"
    mixer: str | dict | list = "softmax"
    out_of_range: str = "error"
    posgen_version: str = POSGEN_VERSION

    def __post_init__(self, **kwargs):
        own = {field.name for field in dataclasses.fields(self)}
        kwargs.pop("layer_types", None)  # derived from `mixer`
        for key in kwargs:
            near = difflib.get_close_matches(key, own, n=1, cutoff=0.8)
            if near:
                raise ValueError(f"PosGenConfig has no field {key!r}; did you mean {near[0]!r}?")
        if self.head_dim is None and self.num_attention_heads:
            self.head_dim = self.hidden_size // self.num_attention_heads
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        if self.intermediate_size is None:
            self.intermediate_size = 4 * self.hidden_size
        for name in COMPONENTS:  # a config never shares a spec with the caller's dict
            setattr(self, name, copy.deepcopy(getattr(self, name)))
        if _version(self.posgen_version) > _version(POSGEN_VERSION):
            logger.warning(
                f"This checkpoint was made by hf_posgen {self.posgen_version}, newer than {POSGEN_VERSION}: "
                "what its config asks for may not be known here."
            )
        self._refuse_what_cannot_be()
        super().__post_init__(**kwargs)

    @property
    def layer_types(self) -> list[str]:
        """Return the library's name of each layer's kind of cache, derived from `mixer`."""
        return [
            "full_attention" if spec_name(spec) == "softmax" else "linear_attention" for spec in self.per_layer("mixer")
        ]

    @layer_types.setter
    def layer_types(self, value):
        raise AttributeError("layer_types is derived from mixer: set mixer instead")

    def per_layer(self, field: str) -> list:
        """Return the spec of a component for each layer."""
        spec = getattr(self, field)
        return list(spec) if isinstance(spec, list) else [spec] * self.num_hidden_layers

    def _refuse_what_cannot_be(self):
        """Raise `ValueError` unless sizes divide, choices exist and specs are well formed. (A validator of `strict` raises
        another type.)"""
        sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "head_dim")
        for name in (*sizes, "num_key_value_heads", "intermediate_size", "max_position_embeddings"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.head_dim * self.num_attention_heads != self.hidden_size and self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not divisible by num_attention_heads {self.num_attention_heads}"
            )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads {self.num_attention_heads} is not divisible by "
                f"num_key_value_heads {self.num_key_value_heads}"
            )
        bounds = {
            "attention_dropout": (0 <= self.attention_dropout < 1, "at least 0 and below 1"),
            "hidden_dropout": (0 <= self.hidden_dropout < 1, "at least 0 and below 1"),
            "initializer_range": (0 < self.initializer_range < math.inf, "a positive number"),
            "norm_eps": (0 < self.norm_eps < math.inf, "a positive number"),
            "embedding_initializer_range": (
                self.embedding_initializer_range is None or 0 < self.embedding_initializer_range < math.inf,
                "a positive number",
            ),
        }
        for name, (holds, wanted) in bounds.items():
            if not holds:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be {wanted}")
        if self.pad_token_id is not None and not 0 <= self.pad_token_id < self.vocab_size:
            raise ValueError(
                f"pad_token_id is {self.pad_token_id}; it must be from 0 to {self.vocab_size - 1} (vocab_size)"
            )
        if self.hidden_act not in ACT2FN:
            raise ValueError(f"hidden_act is {self.hidden_act!r}; allowed: {', '.join(sorted(ACT2FN))}")
        choices = {
            "norm": ("layernorm", "rmsnorm", "none"),
            "mlp": ("plain", "gated", "none"),
            "out_of_range": ("error", "clamp", "wrap"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}; allowed: {', '.join(allowed)}")
        for name in COMPONENTS:
            self._validate_spec(name, getattr(self, name))

    def _validate_spec(self, field: str, spec):
        if isinstance(spec, list):
            if field not in PER_LAYER:
                raise ValueError(f"{field} is one for the whole model, not a list")
            if len(spec) != self.num_hidden_layers:
                raise ValueError(f"{field} lists {len(spec)} layers; num_hidden_layers is {self.num_hidden_layers}")
        for of_layer in spec if isinstance(spec, list) else [spec]:
            spec_name(of_layer, field)


def spec_name(spec, field: str = "a component") -> str:
    """Return the name in a spec; raise `ValueError` where there is none."""
    name = spec.get("name") if isinstance(spec, dict) else spec
    if not isinstance(name, str):
        raise ValueError(f"{field} is {spec!r}; it must be a name or a dict with a 'name'")
    return name


__all__ = ["PosGenConfig"]
