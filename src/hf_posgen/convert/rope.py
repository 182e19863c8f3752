"""RoPE's settings in two languages: transformers' `rope_parameters` and our specs."""

from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ..model.encoding_registry import ENCODINGS, by_rope_type

# The settings that mean the same in both, beside "factor".
SHARED_SETTINGS = {"longrope": ("short_factor", "long_factor"), "llama3": ("low_freq_factor", "high_freq_factor")}


def spec_from_rope(config) -> tuple[dict, int]:
    """Return (our spec, the original length) for a config with `rope_parameters`; raise `ValueError` where we have none."""
    parameters = config.rope_parameters
    rope_type = parameters.get("rope_type", "default")
    share = parameters.get("partial_rotary_factor") or 1.0
    original = parameters.get("original_max_position_embeddings") or config.max_position_embeddings
    spec = {"base": float(parameters["rope_theta"])}
    if rope_type == "proportional":
        if (parameters.get("factor") or 1.0) != 1.0:
            raise ValueError(
                f"proportional RoPE with factor {parameters['factor']} has no counterpart: p-RoPE does not scale"
            )
        return {"name": "rope", **spec, "p": share}, original
    names = by_rope_type()
    if rope_type not in names:
        allowed = ", ".join(["proportional", *names])
        raise ValueError(f"rope_type {rope_type!r} has no counterpart; allowed: {allowed}")
    spec |= {"share": share}
    if rope_type == "default":
        return {"name": names[rope_type], **spec}, original
    if rope_type == "dynamic":
        original = config.max_position_embeddings
    spec["factor"] = float(parameters.get("factor") or config.max_position_embeddings / original)
    if rope_type == "yarn":
        if parameters.get("truncate") is False:
            raise ValueError("YaRN with truncate false has no counterpart: our ramp begins and ends on whole pairs")
        spec["beta_fast"] = float(parameters.get("beta_fast") or 32)
        spec["beta_slow"] = float(parameters.get("beta_slow") or 1)
    if rope_type in ("yarn", "longrope"):  # the library's own rule, which reads more settings than we have
        spec["attention_factor"] = float(ROPE_INIT_FUNCTIONS[rope_type](config)[1])
    shared = {key: parameters[key] for key in SHARED_SETTINGS.get(rope_type, ())}
    return {"name": names[rope_type], **spec, **shared}, original


def rope_from_spec(spec: dict, config) -> tuple[dict, int]:
    """Return (transformers' `rope_parameters`, `max_position_embeddings`) for a complete spec of ours; raise `ValueError`
    for one that they can't express."""
    name, original = spec["name"], config.max_position_embeddings
    rope_types = {ours: rope_type for rope_type, ours in by_rope_type().items()} | {"rope_ntk": "default"}
    if name not in rope_types:
        known = ", ".join(encoding for encoding in ENCODINGS if encoding in rope_types)
        raise ValueError(f"position_encoding is {name!r} and Llama has RoPE: {known}")
    if spec.get("share", 1.0) != 1.0:
        raise ValueError(f"RoPE rotates a share of {spec['share']} and Llama rotates whole heads")
    if spec.get("grid", "geometric") != "geometric":
        raise ValueError(f"RoPE's grid is {spec['grid']!r} and Llama's is geometric")
    parameters = {"rope_type": rope_types[name], "rope_theta": spec["base"]}
    if name == "rope":
        proportional = {"rope_type": "proportional", "partial_rotary_factor": spec["p"]}
        return parameters | (proportional if spec["p"] < 1 else {}), original
    if name == "rope_ntk":  # another base, once and for all
        size = config.head_dim
        return parameters | {"rope_theta": spec["base"] * spec["factor"] ** (size / (size - 2))}, original
    settings = {key: value for key, value in spec.items() if key not in ("name", "base", "share")}
    if name == "rope_longrope":
        pairs = config.head_dim // 2
        settings["short_factor"] = spec["short_factor"] or [1.0] * pairs
        settings["long_factor"] = spec["long_factor"] or [spec["factor"]] * pairs
    if settings.get("attention_factor", 0) is None:
        del settings["attention_factor"]
    if name in ("rope_linear", "rope_dynamic_ntk"):
        return parameters | settings, original
    return parameters | settings | {"original_max_position_embeddings": original}, round(original * spec["factor"])
