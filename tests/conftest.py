"""For all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Most JVMs of these tests live for seconds: what the second compiler would gain them it would cost twice over.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

# On a busy machine an example takes as long as it takes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

_SPARK = Path(__file__).parent / "spark"
_MADE_ONCE = {"postgresql": "postgresql", "undisturbed": "readings", "stopped_once": "readings"}
"""Fixtures that are servers or take many seconds to make, and the tests that share them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run side by side (`--dist loadgroup`), those that share something do so in one process.

    So there is one Spark session and one PostgreSQL: a JVM takes a gigabyte, and there are never more than
    four at a time.
    """
    for item in items:
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(name=group))


def _group(item: pytest.Item) -> str | None:
    if item.path.is_relative_to(_SPARK):
        return "spark"
    used = getattr(item, "fixturenames", ())
    return next((group for fixture, group in _MADE_ONCE.items() if fixture in used), None)
