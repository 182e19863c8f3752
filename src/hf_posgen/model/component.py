"""Components by name: the three lines of machinery that encodings, samplers, logit scales and mixers share.

A registry is an explicit dict {name: class}. The hyper-parameters of a class are the keyword-only arguments of its
`__init__`; what stands before them (the config, the layer's index) is the house's.
"""

import difflib
import inspect

from .configuration_posgen import spec_name


def hyperparameters(cls: type) -> dict:
    """{name: default} of a component's hyper-parameters."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def unknown(kind: str, given: str, allowed) -> ValueError:
    """The error for a name that isn't there: what was given, the nearest, and what is allowed."""
    near = difflib.get_close_matches(given, allowed, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return ValueError(f"unknown {kind} {given!r}{hint}; allowed: {', '.join(sorted(allowed)) or 'none'}")


def resolve(spec: str | dict, registry: dict[str, type], kind: str) -> dict:
    """Complete a spec: {"name": ..., **every effective hyper-parameter}.

    Raises `ValueError` for a missing or unknown name, an unknown argument, or one that has no default and isn't given.
    """
    name = spec_name(spec, kind)
    if name not in registry:
        raise unknown(kind, name, registry)
    given = {} if isinstance(spec, str) else {key: value for key, value in spec.items() if key != "name"}
    defaults = hyperparameters(registry[name])
    for key in given:
        if key not in defaults:
            raise unknown(f"argument of {kind} {name!r}", key, defaults)
    complete = defaults | given
    for key, value in complete.items():
        if value is inspect.Parameter.empty:
            raise ValueError(f"{kind} {name!r} needs {key!r}")
    return {"name": name} | complete


def build(spec: str | dict, registry: dict[str, type], kind: str, *house):
    """An instance of what the spec names; `house` are the positional arguments every class of this family takes."""
    complete = resolve(spec, registry, kind)
    return registry[complete.pop("name")](*house, **complete)


def resolve_field(spec: str | dict | list, registry: dict[str, type], kind: str) -> dict | list:
    """`resolve` for a config field, which may hold one spec per layer."""
    return [resolve(one, registry, kind) for one in spec] if isinstance(spec, list) else resolve(spec, registry, kind)
