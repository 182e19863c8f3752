"""Values as annotations ask for them: nothing is lost, and nothing is taken for something else."""

import math
from typing import Literal

import pytest

from hf_posgen.common.numbers import Numbers, numbers
from hf_posgen.common.typed import typed


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        ("1e6", float, 1e6),
        (3, float, 3.0),
        (3, float | int, 3),
        ("0.5", float | None, 0.5),
        (None, float | None, None),
        ("no", bool, False),
        ("Yes", bool, True),
        ("no", Literal["no", "bf16"], "no"),
        (False, Literal["no", "bf16"], "no"),
        (["a", "b"], tuple[str, ...], ("a", "b")),
        ("1-3,7", Numbers, (1, 2, 3, 7)),
        (5, Numbers | None, (5,)),
        ([1, 2], Numbers, (1, 2)),
    ],
)
def test_converted_where_nothing_is_lost(value, hint, expected):
    got = typed("x", value, hint)
    assert got == expected and type(got) is type(expected)


@pytest.mark.parametrize(
    ("value", "hint", "wanted"),
    [
        (True, float, "a finite number"),
        (True, int, "a whole number"),
        (1, bool, "true or false"),
        (math.nan, float, "a finite number"),
        ("inf", float, "a finite number"),
        (10**400, float, "a finite number"),
        ("many", float, "a finite number"),
        (1.5, int, "a whole number"),
        (2.0, int, "a whole number"),
        ("2", int, "a whole number"),
        (None, float, "a finite number"),
        (5, str, "text"),
        (True, Literal["no", "bf16"], "allowed: no, bf16"),
        ("fp16", Literal["no", "bf16"], "allowed: no, bf16"),
        ("wandb", tuple[str, ...], "a list of names"),
        ([1, True], Numbers, "a list of whole numbers"),
        ({}, Numbers | None, "a list of whole numbers .* or none"),
    ],
)
def test_refused_with_what_was_given_and_what_is_allowed(value, hint, wanted):
    with pytest.raises(ValueError, match=f"x is .*; .*{wanted}"):
        typed("x", value, hint)


@pytest.mark.parametrize("text", ["7-3", "1-100000000", "a", "1,,b"])
def test_texts_that_name_no_numbers(text):
    with pytest.raises(ValueError, match=text):
        numbers(text)
