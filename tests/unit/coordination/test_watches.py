from __future__ import annotations

import threading

from penstock.coordination.watches import Watches

from ...waiting import wait_until


def test_a_change_during_a_call_leads_to_another_call() -> None:
    watches = Watches()
    calls: list[int] = []

    def change_once_more() -> None:
        calls.append(1)
        if len(calls) == 1:
            watches.changed("k")

    watches.add("", change_once_more)
    watches.changed("k")
    wait_until(lambda: len(calls) == 2)
    watches.close()


def test_changes_that_nobody_has_been_told_of_yet_are_told_together() -> None:
    watches = Watches()
    busy, go_on, calls = threading.Event(), threading.Event(), []

    def block() -> None:
        busy.set()
        go_on.wait()

    watches.add("first", block)
    watches.add("second", lambda: calls.append("second"))
    watches.add("third", lambda: calls.append("third"))
    watches.changed("first")
    busy.wait()
    for _ in range(10):
        watches.changed("second/x")
    watches.changed("third")
    go_on.set()
    wait_until(lambda: "third" in calls)
    assert calls == ["second", "third"]
    watches.close()


def test_after_closing_nobody_is_called() -> None:
    watches = Watches()
    calls: list[int] = []
    watches.add("", lambda: calls.append(1))
    watches.add_expired(lambda: calls.append(2))
    watches.close()
    watches.changed("k")
    watches.expired()
    assert calls == []
    assert watches.all() == []
