from __future__ import annotations

import threading

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
