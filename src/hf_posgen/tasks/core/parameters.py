"""Parameters of a task: their types, and numbers written as text."""

import re
import types
import typing

Numbers = tuple[int, ...]  # written as a list, or as text: "1-14,26-120"


def numbers(text: str) -> Numbers:
    """The whole numbers that a text like "1-14, 26-120" names, in order. `ValueError` for another text."""
    out: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match:
            raise ValueError(f"{text!r} is no list of whole numbers such as '1-14,26-120'")
        first, last = int(match[1]), int(match[2] or match[1])
        out.extend(range(first, last + 1))
    return tuple(out)


def typed(task: str, key: str, value, hint):
    """The value as its type where nothing is lost: lists, text and single numbers become tuples of numbers, whole numbers
    floats where floats are wanted.

    Raises `ValueError` that names the task, the parameter, what was given and what is allowed.
    """
    if typing.get_origin(hint) is typing.Literal:
        if value in typing.get_args(hint) and isinstance(value, str):
            return value
        raise ValueError(f"task {task!r}: {key} is {value!r}; allowed: {', '.join(typing.get_args(hint))}")
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    options = typing.get_args(hint) if union else (hint,)
    if value is None and type(None) in options:
        return None
    if Numbers in options and isinstance(value, str):
        return numbers(value)
    if Numbers in options and type(value) is int:
        return (value,)
    if Numbers in options and isinstance(value, list | tuple) and all(type(item) is int for item in value):
        return tuple(value)
    if float in options and type(value) is int:
        return float(value)
    if type(value) in options:
        return value
    wanted = " or ".join(_spoken(option) for option in options)
    raise ValueError(f"task {task!r}: {key} is {value!r}; it must be {wanted}")


def _spoken(option) -> str:
    if option == Numbers:
        return "a list of whole numbers (or text like '1-14,26-120')"
    return "none" if option is type(None) else f"of type {option.__name__}"
