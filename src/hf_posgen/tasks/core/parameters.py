"""Parameters of a task: what each one means, its type, its bounds, and numbers written as text."""

import dataclasses
import re
import types
import typing
from dataclasses import dataclass
from functools import cache

Numbers = tuple[int, ...]  # written as a list, or as text: "1-14,26-120"

# Bounds that many parameters share: beyond them a task takes minutes to set up, or more memory than there is.
MOST_TOKENS = 2**17  # of a trained sequence
MOST_TEST_TOKENS = 2**20  # of one that is only evaluated
MOST_SYMBOLS = 2**16
MOST_NUMBERS = 2**17  # that one text such as "1-14,26-120" may name


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


def numbers(text: str) -> Numbers:
    """The whole numbers that a text like "1-14, 26-120" names, in order. `ValueError` for another text, and for one that
    names more than `MOST_NUMBERS`."""
    out: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match:
            raise ValueError(f"{text!r} is no list of whole numbers such as '1-14,26-120'")
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first + len(out) >= MOST_NUMBERS:
            raise ValueError(f"{text!r} names more than {MOST_NUMBERS:,} numbers")
        out.extend(range(first, last + 1))
    return tuple(out)


def typed(task: str, key: str, value, hint):
    """The value as its type where nothing is lost: lists, text and single numbers become tuples of numbers, whole numbers
    and numbers as text ("1e-3", which YAML reads as text) floats where floats are wanted.

    Raises `ValueError` that names the task, the parameter, what was given and what is allowed.
    """
    if typing.get_origin(hint) is typing.Literal:
        if isinstance(value, str) and value in typing.get_args(hint):
            return value
        raise ValueError(f"task {task!r}: {key} is {value!r}; allowed: {', '.join(typing.get_args(hint))}")
    options = _options(hint)
    if value is None and type(None) in options:
        return None
    if Numbers in options and isinstance(value, str):
        try:
            return numbers(value)
        except ValueError as error:
            raise ValueError(f"task {task!r}: {key}: {error}") from None
    if Numbers in options and type(value) is int:
        return (value,)
    if Numbers in options and isinstance(value, list | tuple) and all(type(item) is int for item in value):
        return tuple(value)
    if float in options and type(value) in (int, str):
        try:
            return float(value)
        except ValueError:
            pass
    if type(value) in options:
        return value
    wanted = " or ".join(_spoken(option) for option in options)
    raise ValueError(f"task {task!r}: {key} is {value!r}; it must be {wanted}")


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


def _spoken(option) -> str:
    if option == Numbers:
        return "a list of whole numbers (or text like '1-14,26-120')"
    return "none" if option is type(None) else f"of type {option.__name__}"
