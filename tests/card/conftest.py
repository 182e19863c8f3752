"""Fixtures of the card's tests."""

from tests.helpers.card_rows import folder  # noqa: F401
