"""The order in which encodings are shown; how they look is the report's affair."""

ORDER = (
    "none",
    "learned",
    "sinusoidal",
    "rope",
    "rope_linear",
    "rope_ntk",
    "rope_dynamic_ntk",
    "rope_yarn",
    "rope_longrope",
    "rope_llama3",
    "xpos",
    "rove",
    "selective_rope",
    "alibi",
    "t5",
    "clipped",
    "kerple",
    "fire",
    "sandwich",
    "shaw",
    "transformer_xl",
    "forgetting_gate",
    "cable",
    "grape",
    "cope",
    "dape",
)


def in_order(encodings: dict[str, str]) -> list[str]:
    """Return the arms of {arm: encoding} in the usual order of encodings, then by name."""
    rank = {name: i for i, name in enumerate(ORDER)}
    return sorted(encodings, key=lambda arm: (rank.get(encodings[arm], len(rank)), arm))
