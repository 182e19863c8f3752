"""Positional encodings by name."""

from .component import build, resolve_field
from .encodings_absolute import Learned, NoPE, Sinusoidal
from .encodings_additive import FIRE, KERPLE, T5, ALiBi, Clipped, Sandwich
from .encodings_contextual import DAPE, CoPE, Shaw, TransformerXL
from .encodings_external import EXTERNAL
from .encodings_gated import CABLE, GRAPE, ForgettingGate, SelectiveRoPE
from .encodings_rotary import DynamicNTKRoPE, LinearRoPE, Llama3RoPE, LongRoPE, NTKRoPE, RoPE, RoVE, XPos, YaRNRoPE
from .position_encoding import PositionEncoding

KIND = "position_encoding"

ENCODINGS: dict[str, type[PositionEncoding]] = {
    "none": NoPE,
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "rope": RoPE,
    "rope_linear": LinearRoPE,
    "rope_ntk": NTKRoPE,
    "rope_dynamic_ntk": DynamicNTKRoPE,
    "rope_yarn": YaRNRoPE,
    "rope_longrope": LongRoPE,
    "rope_llama3": Llama3RoPE,
    "xpos": XPos,
    "rove": RoVE,
    "selective_rope": SelectiveRoPE,
    "alibi": ALiBi,
    "t5": T5,
    "clipped": Clipped,
    "kerple": KERPLE,
    "fire": FIRE,
    "sandwich": Sandwich,
    "shaw": Shaw,
    "transformer_xl": TransformerXL,
    "forgetting_gate": ForgettingGate,
    "cable": CABLE,
    "grape": GRAPE,
    "cope": CoPE,
    "dape": DAPE,
    **EXTERNAL,
}


def register(name: str, cls: type[PositionEncoding]) -> None:
    """Make an encoding defined elsewhere available by name, in this process.

    Raises `ValueError` for a name that another class holds, or a class that is no `PositionEncoding`.
    """
    if not (isinstance(cls, type) and issubclass(cls, PositionEncoding)):
        raise ValueError(f"{cls!r} is no subclass of PositionEncoding")
    if ENCODINGS.get(name, cls) is not cls:
        raise ValueError(f"the name {name!r} is taken by {ENCODINGS[name].__name__}")
    ENCODINGS[name] = cls


def by_rope_type() -> dict[str, str]:
    """Return {transformers' name of a kind of RoPE: our name of the encoding}."""
    own = {vars(cls).get("rope_type"): name for name, cls in ENCODINGS.items()}
    return {rope_type: name for rope_type, name in own.items() if rope_type is not None}


def resolve_encoding(spec) -> dict | list:
    """Return the completed spec or specs; a list, one per layer, may not hold an encoding that acts on the embeddings."""
    complete = resolve_field(spec, ENCODINGS, KIND)
    if isinstance(complete, list):
        for of_layer in complete:
            if "embedding" in ENCODINGS[of_layer["name"]].sites():
                raise ValueError(f"{of_layer['name']!r} acts on the embeddings, once: it can't be listed per layer")
    return complete


def build_encoding(spec, config) -> PositionEncoding:
    return build(spec, ENCODINGS, KIND, config)
