"""RoPE's settings in two languages: transformers' `rope_parameters` and our specs."""

from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS


def spec_from_rope(config) -> tuple[dict, int]:
    """(our spec, the original length) for a config with `rope_parameters`. `ValueError` for what we don't have."""
    given = config.rope_parameters
    kind = given.get("rope_type", "default")
    share = given.get("partial_rotary_factor") or 1.0
    original = given.get("original_max_position_embeddings") or config.max_position_embeddings
    spec = {"base": float(given["rope_theta"])}
    if kind == "proportional":
        if (given.get("factor") or 1.0) != 1.0:
            raise ValueError(
                f"proportional RoPE with factor {given['factor']} has no counterpart: p-RoPE does not scale"
            )
        return {"name": "rope", **spec, "p": share}, original
    spec |= {"share": share}
    if kind == "default":
        return {"name": "rope", **spec}, original
    names = {"linear": "rope_linear", "dynamic": "rope_dynamic_ntk", "yarn": "rope_yarn"}
    names |= {"longrope": "rope_longrope", "llama3": "rope_llama3"}
    if kind not in names:
        raise ValueError(f"rope_type {kind!r} has no counterpart; allowed: default, proportional, {', '.join(names)}")
    if kind == "dynamic":
        original = config.max_position_embeddings
    spec["factor"] = float(given.get("factor") or config.max_position_embeddings / original)
    if kind == "yarn":
        if given.get("truncate") is False:
            raise ValueError("YaRN with truncate false has no counterpart: our ramp begins and ends on whole pairs")
        spec |= {"beta_fast": float(given.get("beta_fast") or 32), "beta_slow": float(given.get("beta_slow") or 1)}
    if kind in ("yarn", "longrope"):  # the library's own rule, which reads more settings than we have
        spec["attention_factor"] = float(ROPE_INIT_FUNCTIONS[kind](config)[1])
    keys = {"longrope": ("short_factor", "long_factor"), "llama3": ("low_freq_factor", "high_freq_factor")}
    return {"name": names[kind], **spec, **{key: given[key] for key in keys.get(kind, ())}}, original


def rope_from_spec(spec: dict, config) -> tuple[dict, int]:
    """(transformers' `rope_parameters`, `max_position_embeddings`) for a complete spec of ours, or a `ValueError`."""
    name, original = spec["name"], config.max_position_embeddings
    if name not in KINDS:
        raise ValueError(f"position_encoding is {name!r} and Llama has RoPE: {', '.join(KINDS)}")
    if spec.get("share", 1.0) != 1.0:
        raise ValueError(f"RoPE rotates a share of {spec['share']} and Llama rotates whole heads")
    if spec.get("grid", "geometric") != "geometric":
        raise ValueError(f"RoPE's grid is {spec['grid']!r} and Llama's is geometric")
    parameters = {"rope_type": KINDS[name], "rope_theta": spec["base"]}
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


KINDS = {
    "rope": "default",
    "rope_linear": "linear",
    "rope_ntk": "default",
    "rope_dynamic_ntk": "dynamic",
    "rope_yarn": "yarn",
    "rope_longrope": "longrope",
    "rope_llama3": "llama3",
}
