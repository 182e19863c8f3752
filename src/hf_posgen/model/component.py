"""Components by name: the three lines of machinery that encodings, samplers, logit scales and mixers share.

A registry is an explicit dict {name: class}. The hyper-parameters of a class are the keyword-only arguments of its
`__init__`; what stands before them (the config, the layer's index) is the same for all classes of a registry.
"""

import difflib
import inspect

from .configuration_posgen import spec_name


def hyperparameters(cls: type) -> dict:
    """Return {name: default} of a component's hyper-parameters; `inspect.Parameter.empty` where there is none."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def unknown(kind: str, name: str, allowed) -> ValueError:
    """Return the error for a name that isn't there: which it is, the nearest, and what is allowed."""
    near = difflib.get_close_matches(name, allowed, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return ValueError(f"unknown {kind} {name!r}{hint}; allowed: {', '.join(sorted(allowed)) or 'none'}")


def resolve(spec: str | dict, registry: dict[str, type], kind: str) -> dict:
    """Return the spec completed: {"name": ..., **every effective hyper-parameter}.

    Raises `ValueError` for a missing or unknown name, an unknown argument, or one that has no default and isn't given.
    """
    name = spec_name(spec, kind)
    if name not in registry:
        raise unknown(kind, name, registry)
    chosen = {} if isinstance(spec, str) else {key: value for key, value in spec.items() if key != "name"}
    defaults = hyperparameters(registry[name])
    for key in chosen:
        if key not in defaults:
            raise unknown(f"argument of {kind} {name!r}", key, defaults)
    complete = defaults | chosen
    for key, value in complete.items():
        if value is inspect.Parameter.empty:
            raise ValueError(f"{kind} {name!r} needs {key!r}")
    return {"name": name} | complete


def build(spec: str | dict, registry: dict[str, type], kind: str, *arguments):
    """Return an instance of what the spec names; `arguments` are those that every class of the registry takes."""
    complete = resolve(spec, registry, kind)
    return registry[complete.pop("name")](*arguments, **complete)


def resolve_field(spec: str | dict | list, registry: dict[str, type], kind: str) -> dict | list:
    """`resolve` for a config field, which may hold one spec per layer."""
    if isinstance(spec, list):
        return [resolve(of_layer, registry, kind) for of_layer in spec]
    return resolve(spec, registry, kind)
