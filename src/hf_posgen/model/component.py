"""Components by name: the three lines of machinery that encodings, samplers, logit scales and mixers share.

A registry is an explicit dict {name: class}. The hyper-parameters of a class are the keyword-only arguments of its
`__init__`; what stands before them (the config, the layer's index) is the same for all classes of a registry.

Each is annotated with its type and its bounds, `base: Annotated[float, Bounds(above=1)]`; a choice of words is a `Literal`.
"""

import difflib
import inspect
import math
import types
import typing
from dataclasses import dataclass
from typing import Annotated

from .configuration_posgen import spec_name


@dataclass(frozen=True)
class Bounds:
    """The numbers that a hyper-parameter may be: from `least` or above `above`, up to `most`; None: no such bound."""

    least: float | None = None
    above: float | None = None
    most: float | None = None

    def allow(self, number: float) -> bool:
        return (
            (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
        )

    def __str__(self) -> str:
        lower = [f"from {self.least:,g}"] if self.least is not None else []
        lower += [f"above {self.above:,g}"] if self.above is not None else []
        return " ".join(lower + ([f"up to {self.most:,g}"] if self.most is not None else []))


# Bounds that many hyper-parameters share. The upper ones are far beyond use, and keep sums and tables finite.
Base = Annotated[float, Bounds(above=1, most=1e15)]  # of a geometric grid of frequencies
Factor = Annotated[float, Bounds(least=1, most=1e6)]  # by which a RoPE scaling stretches the length
Positive = Annotated[float, Bounds(above=0, most=1e12)]
Size = Annotated[int, Bounds(least=1, most=2**20)]  # of a table, a layer or a state
Spread = Annotated[float, Bounds(least=0, most=100)]  # a standard deviation


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
    annotations = _annotations(registry[name])
    checked = {
        key: checked_value(f"{kind} {name!r}: {key}", annotations[key], value) for key, value in complete.items()
    }
    return {"name": name} | checked


def _annotations(cls: type) -> dict:
    """Return {name: annotation} of a class's hyper-parameters; `inspect.Parameter.empty` where there is none that can be
    read."""
    try:
        hints = typing.get_type_hints(cls.__init__, include_extras=True)
    except NameError:  # somebody else's annotation, of a name that is gone
        hints = {}
    return {name: hints.get(name, inspect.Parameter.empty) for name in hyperparameters(cls)}


def checked_value(name: str, annotation, value):
    """Return the value, numbers read from text ("1e6") among them. Raise `ValueError`, in a sentence that says what is
    allowed, for another type, NaN, infinity, or a number out of bounds."""
    if annotation is inspect.Parameter.empty:
        return value
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    options = typing.get_args(annotation) if union else (annotation,)
    if value is None and type(None) in options:
        return None
    for option in options:
        if option is type(None):
            continue
        accepted, result = _read(option, value)
        if accepted:
            return result
    raise ValueError(f"{name} is {value!r}; it must be {' or '.join(map(_wanted, options))}")


def _split(annotation) -> tuple[object, Bounds]:
    if typing.get_origin(annotation) is Annotated:
        kind, *marks = typing.get_args(annotation)
        return kind, next((mark for mark in marks if isinstance(mark, Bounds)), Bounds())
    return annotation, Bounds()


def _read(annotation, value) -> tuple[bool, object]:
    """Return (whether an annotation without alternatives allows the value, the value as its type)."""
    kind, bounds = _split(annotation)
    if typing.get_origin(kind) is typing.Literal:
        return isinstance(value, str) and value in typing.get_args(kind), value
    if typing.get_origin(kind) is list:
        read = [_read(typing.get_args(kind)[0], item) for item in value] if isinstance(value, list | tuple) else []
        return isinstance(value, list | tuple) and all(ok for ok, _ in read), [item for _, item in read]
    if kind in (int, float):
        number = _number(value, kind)
        return number is not None and bounds.allow(number), number
    if kind in (bool, str):
        return isinstance(value, kind), value
    return True, value  # a type that somebody else's encoding has; its class checks it


def _number(value, kind: type) -> int | float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
        value = int(value) if kind is int and math.isfinite(value) and value == int(value) else value
    if type(value) is int:
        return value
    return value if kind is float and type(value) is float and math.isfinite(value) else None


def _wanted(annotation) -> str:
    kind, bounds = _split(annotation)
    if typing.get_origin(kind) is typing.Literal:
        return "one of these; allowed: " + ", ".join(typing.get_args(kind))
    if typing.get_origin(kind) is list:
        return f"a list, each item {_wanted(typing.get_args(kind)[0])}"
    words = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text", type(None): "null"}
    return f"{words.get(kind, kind)} {bounds}".strip()


def build(spec: str | dict, registry: dict[str, type], kind: str, *arguments):
    """Return an instance of what the spec names; `arguments` are those that every class of the registry takes."""
    complete = resolve(spec, registry, kind)
    return registry[complete.pop("name")](*arguments, **complete)


def resolve_field(spec: str | dict | list, registry: dict[str, type], kind: str) -> dict | list:
    """`resolve` for a config field, which may hold one spec per layer."""
    if isinstance(spec, list):
        return [resolve(of_layer, registry, kind) for of_layer in spec]
    return resolve(spec, registry, kind)
