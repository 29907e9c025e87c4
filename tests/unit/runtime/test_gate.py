from __future__ import annotations

import time

import pytest

from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.orders import EVERYTHING, Orders
from penstock.errors import CoordinationError
from penstock.runtime.gate import Gate
from penstock.spark.signals import Held


class Clock:
    def __init__(self) -> None:
        self.now = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


def look(gate: Gate, orders: Orders, clock: Clock, replicas: int = 1, reads_ahead: bool = True) -> Held:
    """What it says to replica 1 when it looks again."""
    clock.now += 1
    gate.heed(orders, "1", [str(number) for number in range(1, replicas + 1)], reads_ahead)
    return gate.held


@pytest.mark.parametrize("what", [EVERYTHING, "counted"])
def test_who_is_frozen_alone_goes_on_to_receive(clock: Clock, what: str) -> None:
    orders, gate = Orders(MemoryCoordinator()), Gate()
    assert look(gate, orders, clock) is Held.NOT
    orders.freeze("1", what)
    assert look(gate, orders, clock) is Held.RECEIVING
    assert gate.is_closed
    orders.unfreeze("1")
    assert look(gate, orders, clock) is Held.NOT
    assert not gate.is_closed


def test_who_has_siblings_leaves_it_to_them_while_one_goes_on(clock: Clock) -> None:
    orders, gate = Orders(MemoryCoordinator()), Gate()
    orders.freeze("1")
    assert look(gate, orders, clock, replicas=2) is Held.STILL
    orders.freeze("2")
    assert look(gate, orders, clock, replicas=2) is Held.RECEIVING
    orders.unfreeze("2")
    assert look(gate, orders, clock, replicas=2) is Held.STILL


def test_who_cannot_read_ahead_stands_still(clock: Clock) -> None:
    orders, gate = Orders(MemoryCoordinator()), Gate()
    orders.freeze("1")
    assert look(gate, orders, clock, reads_ahead=False) is Held.STILL


def test_the_coordinator_is_not_asked_at_every_turn_and_a_change_is_told_once(clock: Clock) -> None:
    orders, gate = Orders(MemoryCoordinator()), Gate()
    gate.heed(orders, "1", ["1"], reads_ahead=True)
    orders.freeze("1")
    assert not gate.heed(orders, "1", ["1"], reads_ahead=True)
    clock.now += 1
    assert gate.heed(orders, "1", ["1"], reads_ahead=True)
    clock.now += 1
    assert not gate.heed(orders, "1", ["1"], reads_ahead=True)
    assert gate.is_closed


def test_it_stays_as_it_was_while_nobody_can_say(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    orders, gate = Orders(MemoryCoordinator()), Gate()
    orders.freeze("1")
    look(gate, orders, clock)

    def away(_: str) -> tuple[str, ...]:
        raise CoordinationError("away")

    monkeypatch.setattr(orders, "frozen", away)
    assert look(gate, orders, clock) is Held.RECEIVING


def test_it_says_what_waits(clock: Clock) -> None:
    orders, gate = Orders(MemoryCoordinator()), Gate()
    assert gate.why_closed(0) is None
    orders.freeze("1")
    look(gate, orders, clock)
    assert gate.why_closed(0) == "frozen; `penstock unfreeze` lets it go on"
    assert gate.why_closed(3) == "frozen with 3 epochs to do; `penstock unfreeze` lets it go on"
