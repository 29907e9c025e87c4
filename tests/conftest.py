"""For all tests."""

from __future__ import annotations

import os

import pytest

# Most JVMs of these tests live for seconds: what the second compiler would gain them it would cost twice over.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

_SEVERAL_JVMS = ("test_chaos", "test_replica_troubles", "test_replicas", "test_rescale_running")
"""Modules of system tests that start more than one Spark each."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `-n 2`, two processes share the tests: one begins with those of the shared session, the other with those
    that start the most JVMs, and what is left goes to whichever is free."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: ("spark", "jvms").index(group) if (group := _group(item)) in ("spark", "jvms") else 2)


def _group(item: pytest.Item) -> str:
    ring = item.path.relative_to(item.config.rootpath / "tests").parts[0]
    if ring == "spark":
        return "spark"
    if ring == "system" and item.path.stem in _SEVERAL_JVMS:
        return "jvms"
    return "/".join(item.path.parts[-2:])
