"""Fixtures of the tests that publish."""

import pytest

from tests.helpers.card_rows import folder  # noqa: F401
from tests.helpers.hub_helpers import published
from tests.helpers.standin_hub import hub_fixture  # noqa: F401


@pytest.fixture
def run(finished_run, tmp_path):
    return published(finished_run, tmp_path)


@pytest.fixture
def waits(monkeypatch):
    """The waits between tries, which take no time."""
    found = []
    monkeypatch.setattr("time.sleep", found.append)
    return found
