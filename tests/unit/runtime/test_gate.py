from __future__ import annotations

import threading
import time

import pytest

from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.orders import Orders
from penstock.runtime.gate import Gate


def passing(gate: Gate) -> threading.Thread:
    thread = threading.Thread(target=gate.pass_through, daemon=True)
    thread.start()
    return thread


def test_nobody_passes_while_it_is_closed() -> None:
    gate = Gate()
    gate.hold(closed=True)
    waiting = passing(gate)
    waiting.join(0.05)
    assert waiting.is_alive()
    assert gate.is_closed
    gate.hold(closed=False)
    waiting.join(5)
    assert not waiting.is_alive()


def test_once_open_for_good_nothing_closes_it() -> None:
    gate = Gate()
    gate.hold(closed=True)
    waiting = passing(gate)
    gate.open_for_good()
    gate.hold(closed=True)
    waiting.join(5)
    assert not waiting.is_alive()
    assert not gate.is_closed


def test_it_is_closed_while_the_replica_is_to_be_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, gate, now = Orders(MemoryCoordinator()), Gate(), 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    orders.freeze("1")
    gate.heed(orders, "2")
    assert not gate.is_closed
    # The coordinator is not asked at every turn.
    gate.heed(orders, "1")
    assert not gate.is_closed
    now += 1
    gate.heed(orders, "1")
    assert gate.is_closed
    orders.unfreeze("1")
    now += 1
    gate.heed(orders, "1")
    assert not gate.is_closed
