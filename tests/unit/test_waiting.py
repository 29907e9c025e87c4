"""Waiting leaves the machine to what is waited for."""

from __future__ import annotations

import time

import pytest

from ..waiting import wait_until


def looks_within(seconds: float, cost: float) -> int:
    """How often a condition that never comes was looked at, when each look takes so long."""
    looks = 0

    def never() -> bool:
        nonlocal looks
        looks += 1
        time.sleep(cost)
        return False

    with pytest.raises(AssertionError, match="did not come"):
        wait_until(never, seconds)
    return looks


def test_a_look_that_costs_much_is_taken_seldom() -> None:
    assert looks_within(0.5, cost=0.02) <= 4


def test_a_look_that_costs_nothing_is_taken_often() -> None:
    assert looks_within(2.0, cost=0.0) > 20


def test_what_ended_is_waited_for_no_longer() -> None:
    began = time.monotonic()
    with pytest.raises(AssertionError, match="it ended before what was waited for came: why"):
        wait_until(lambda: False, 60.0, alive=lambda: False, said=lambda: "why")
    assert time.monotonic() - began < 30.0
