"""What a run's model is made of, by name. Imports nothing heavy."""

from collections.abc import Mapping

from .schema import COMPONENTS


def specs(spec) -> list[dict]:
    """Return a component's specs: one for each layer where layers differ, else the only one."""
    return spec if isinstance(spec, list) else [spec]


def distinct_specs(spec) -> list[dict]:
    """Return the different ones among a component's specs, in order."""
    return [one for i, one in enumerate(specs(spec)) if one not in specs(spec)[:i]]


def component_name(model: dict, key: str) -> str:
    """Return the names of a model's component, each once: "rope", or "rope+none" where layers differ."""
    return "+".join(dict.fromkeys(spec["name"] for spec in specs(model[key])))


def arm_name(model: dict) -> str:
    """Return a short name from what is special about a model."""
    names = [component_name(model, "position_encoding")]
    for key, plain in (("position_sampler", "sequential"), ("logit_scale", "none"), ("mixer", "softmax")):
        names += [name for name in component_name(model, key).split("+") if name != plain]
    return "-".join(names)


def table_rows(model: dict) -> int | None:
    """Return the rows of a learned table that refuses positions past its end; None where no component has one."""
    learned = model["out_of_range"] == "error" and any(
        spec["name"] == "learned" for spec in specs(model["position_encoding"])
    )
    return model["max_position_embeddings"] if learned else None


def describe_component(field: str, spec: dict) -> dict:
    """Return what a component is, from the class that its name stands for; the bare name where it is defined elsewhere.

    field: one of `COMPONENTS`."""
    cls = registry(field).get(spec["name"])
    sentence = " ".join((cls.__doc__ or "").split("\n\n")[0].split()) if cls else "defined in the checkpoint's own code"
    return {
        "field": field,
        "name": spec["name"],
        "arguments": {key: value for key, value in spec.items() if key != "name"},
        "what": sentence,
        "acts_on": (", ".join(cls.sites()) or "nothing") if cls and hasattr(cls, "sites") else None,
        "paper": getattr(cls, "paper", None),
    }


def registry(field: str) -> Mapping[str, type]:
    """Return {name: class} of a component field. Imports the model, and torch with it."""
    from ..model.encoding_registry import ENCODINGS
    from ..model.logit_scale import LOGIT_SCALES
    from ..model.mixer_registry import MIXERS
    from ..model.position_sampler import SAMPLERS

    registries: tuple[Mapping[str, type], ...] = (ENCODINGS, SAMPLERS, LOGIT_SCALES, MIXERS)
    return dict(zip(COMPONENTS, registries, strict=True))[field]
