"""Parameters of a task: what each one means, its type and its bounds."""

import dataclasses
import types
import typing
from dataclasses import dataclass
from functools import cache

from ...common.numbers import Numbers, numbers

__all__ = [
    "MOST_SYMBOLS",
    "MOST_TEST_TOKENS",
    "MOST_TOKENS",
    "Numbers",
    "Parameter",
    "check_bounds",
    "describe_parameters",
    "numbers",
    "parameter",
    "type_hints",
]

# Bounds that many parameters share: beyond them a task takes minutes to set up, or more memory than there is.
MOST_TOKENS = 2**16  # of a trained sequence
MOST_TEST_TOKENS = 2**20  # of one that is only evaluated
MOST_SYMBOLS = 2**16


def parameter(default, meaning: str, *, least=None, most=None, evaluation: bool = False):
    """A field of a task.

    meaning: one phrase, for the reference page and `posgen list tasks NAME`. least, most: the bounds, both allowed; of a
    list those of every number in it. evaluation: it chooses which cells are evaluated and changes nothing that is drawn.
    """
    facts = {"meaning": meaning, "least": least, "most": most, "evaluation": evaluation}
    return dataclasses.field(default=default, metadata=facts)


@dataclass(frozen=True)
class Parameter:
    """What a reader needs to know about one parameter."""

    name: str
    type: str
    default: object
    meaning: str
    allowed: str


def describe_parameters(cls: type) -> list[Parameter]:
    """Describe each parameter of a task class, in the order of its fields."""
    hints = type_hints(cls)
    return [
        Parameter(f.name, _type_name(hints[f.name]), _written(f.default), f.metadata.get("meaning", ""), _allowed(f))
        for f in dataclasses.fields(cls)
    ]


def _written(default):
    return list(default) if isinstance(default, tuple) else default


def _allowed(field) -> str:
    """The bounds in words; empty where there are none."""
    least, most = field.metadata.get("least"), field.metadata.get("most")
    if least is None and most is None:
        return ""
    if most is None:
        return f"at least {least:,}"
    return f"at most {most:,}" if least is None else f"{least:,} to {most:,}"


def _type_name(hint) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(f"`{value}`" for value in typing.get_args(hint))
    options = [option for option in _options(hint) if option is not type(None)]
    return " or ".join("whole numbers" if option == Numbers else option.__name__ for option in options)


def check_bounds(task: str, field, value) -> None:
    """Raise `ValueError` for a value outside the bounds of its field; None and text have none."""
    least, most = field.metadata.get("least"), field.metadata.get("most")
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, int | float) and not isinstance(number, bool):
            inside = (least is None or number >= least) and (most is None or number <= most)
            if not inside or number != number:
                raise ValueError(f"task {task!r}: {field.name} is {number}; it must be {_allowed(field) or 'a number'}")


@cache
def type_hints(cls: type) -> dict:
    """The resolved annotations of a class."""
    return typing.get_type_hints(cls)


def _options(hint) -> tuple:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if union else (hint,)
