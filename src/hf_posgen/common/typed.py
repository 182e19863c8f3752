"""Values as the types that annotations ask for, where nothing is lost: one function for runs, tasks and sweeps."""

import math
import types
import typing

from .numbers import Numbers, numbers

WORDS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}  # of YAML 1.1 and the shell
WANTED = {
    int: "a whole number",
    float: "a finite number",
    str: "text (in quotes where it looks like something else)",
    bool: "true or false",
    Numbers: "a list of whole numbers (or text like '1-14,26-120')",
    tuple[str, ...]: "a list of names",
    type(None): "none",
}


def typed(name: str, value, hint):
    """Return a value as the type of an annotation: int, float, str, bool, `Literal[...]`, `tuple[str, ...]`, `Numbers`, or
    a union of those with None.

    Whole numbers pass for floats, text such as "1e-3" for a float, "no" for
    False (and False for the choice "no", as YAML 1.1 reads it), lists for tuples; text and a single number for `Numbers`.

    Raises `ValueError` for any other value, NaN and infinity among them, in a sentence that names it and what is allowed.
    """
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    options = typing.get_args(hint) if union else (hint,)
    if value is None and type(None) in options:
        return None
    if type(value) in options and not isinstance(value, float):
        return value
    for option in options:
        try:
            converted = _converted(value, option)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if converted is not None:
            return converted
    choices = [choice for option in options for choice in typing.get_args(option)]
    if any(typing.get_origin(option) is typing.Literal for option in options):
        raise ValueError(f"{name} is {value!r}; allowed: {', '.join(map(str, choices))}")
    raise ValueError(f"{name} is {value!r}; it must be {' or '.join(WANTED[option] for option in options)}")


def _choice(value, literal):
    choices = typing.get_args(literal)
    if isinstance(value, bool):
        value = next((word for word, meaning in WORDS.items() if meaning is value and word in choices), value)
    return value if isinstance(value, str) and value in choices else None


def _converted(value, wanted):
    """The value as a type; None where it isn't one. Raises `ValueError` for text that names no numbers."""
    if typing.get_origin(wanted) is typing.Literal:
        return _choice(value, wanted)
    if wanted is bool and isinstance(value, str):
        return WORDS.get(value.lower())
    if wanted is float and isinstance(value, str):
        return _finite(value)
    if wanted is float and type(value) in (int, float):
        return _finite(value)
    if wanted == Numbers and isinstance(value, str):
        return numbers(value)
    if wanted == Numbers and type(value) is int:
        return (value,)
    if wanted == Numbers and isinstance(value, list | tuple):
        return tuple(value) if all(type(item) is int for item in value) else None
    if wanted == tuple[str, ...] and isinstance(value, list | tuple):
        return tuple(value) if all(isinstance(item, str) for item in value) else None
    return value if type(value) is wanted else None


def _finite(value: str | int | float) -> float | None:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
