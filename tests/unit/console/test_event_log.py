"""Events that outlive the master that saw them, told once."""

from __future__ import annotations

import time

import pytest

from penstock.console.desired import Desired, Wanted
from penstock.console.event_log import ENTRY, KEPT
from penstock.console.events import Event
from penstock.console.nodes import Nodes
from penstock.console.watching import Watching
from penstock.coordination.memory import MemoryCoordinator, MemoryStore
from penstock.errors import CoordinationError

from .running_console import view


class Several:
    """Masters that watch one topology; each looks when it is told to."""

    def __init__(self) -> None:
        self.store, self.now = MemoryStore(), 0.0
        self.coordinator = MemoryCoordinator(self.store)
        self.written = 0
        Desired(self.coordinator).add(Wanted("t", "d", "f", replicas=2))

    def master(self) -> Watching:
        return Watching(Counting(self), lambda: self.now)

    def see(self, how: str, *phases: str) -> None:
        self.now += 1
        replicas = [view(str(number), phase) for number, phase in enumerate(phases, 1)]
        Nodes(self.coordinator).tell("a", "t", {
            "how": how, "why": "", "epoch": 1, "at": time.time() + self.now, "replicas": replicas, "safety": "",
            "progress": None, "busy": False})  # fmt: skip


class Counting(MemoryCoordinator):
    """Counts how often the events are written."""

    def __init__(self, several: Several) -> None:
        super().__init__(several.store)
        self._several = several

    def create_if_absent(self, key: str, value: str) -> str:
        self._several.written += key == ENTRY
        return super().create_if_absent(key, value)

    def replace(self, key: str, expected: str, value: str) -> bool:
        self._several.written += key == ENTRY
        return super().replace(key, expected, value)


def words(watching: Watching) -> list[str]:
    return [event.words for event in watching.events(last=2 * KEPT)]


SAFE = "2/2 safe: any one of them may fail now"
GONE = "replica 1 on node-b is gone; the others go on"


def test_a_standby_tells_what_the_leader_saw_and_was_told() -> None:
    several = Several()
    leader, standby = several.master(), several.master()
    several.see("running", "safe", "safe")
    for watching in (leader, standby):
        watching.look()
        watching.write_events(leading=watching is leader)
    leader.note(Event(5.0, "t", "ann: freeze replica 1"))
    standby.look()
    assert words(standby) == words(leader) == ["runs", SAFE, "ann: freeze replica 1"]
    # The leader dies; what happens before the standby leads, and before it was written down, is told once.
    several.see("running", "down", "safe")
    leader.look()
    standby.look()
    standby.write_events(leading=True)
    assert words(standby) == ["runs", SAFE, "ann: freeze replica 1", GONE]
    assert [event.number for event in standby.events()] == [1, 2, 3, 4]
    # The one before was not quite dead: what it writes late is not told twice.
    leader.write_events(leading=True)
    standby.look()
    assert words(standby) == words(leader) == ["runs", SAFE, "ann: freeze replica 1", GONE]


@pytest.mark.parametrize("standby_first", [True, False])
def test_what_both_have_seen_is_told_once_whoever_saw_it_first(standby_first: bool) -> None:
    several = Several()
    leader, standby = several.master(), several.master()
    for phases in (("safe", "safe"), ("down", "safe"), ("safe", "safe"), ("down", "safe")):
        several.see("running", *phases)
        if standby_first:
            standby.look()
        leader.look()
        leader.write_events(leading=True)
        if not standby_first:
            standby.look()
        standby.write_events(leading=False)
    standby.look()
    standby.write_events(leading=True)
    assert words(standby) == words(leader)
    assert words(standby).count(GONE) == 2


def test_the_next_console_goes_on_where_the_last_one_ended() -> None:
    several = Several()
    first = several.master()
    several.see("running", "safe", "safe")
    first.look()
    first.write_events(leading=True)
    second = several.master()
    second.look()
    second.write_events(leading=True)
    # Nothing has happened meanwhile.
    assert words(second) == ["runs", SAFE]
    several.see("failed")
    third = several.master()
    third.look()
    third.write_events(leading=True)
    assert words(third) == ["runs", SAFE, "has failed and is not started again"]


def test_nothing_is_written_while_nothing_happens_and_what_is_kept_is_bounded() -> None:
    several = Several()
    leader = several.master()
    for _ in range(20):
        several.see("running", "safe", "safe")
        leader.look()
        leader.write_events(leading=True)
    assert several.written == 1
    for number in range(KEPT + 50):
        leader.note(Event(0.0, "t", f"{number} " + "\U0001f600" * 500))
    assert len(words(leader)) == KEPT
    assert words(leader)[-1].startswith(f"{KEPT + 49} ")
    fresh = several.master()
    fresh.look()
    assert words(fresh) == words(leader)


def test_a_command_given_while_the_coordinator_goes_away_is_written_down_when_it_is_back() -> None:
    several = Several()
    leader = several.master()
    leader.look()
    leader.write_events(leading=True)
    several.store.go_away()
    leader.note(Event(0.0, "t", "ann: stop"))
    with pytest.raises(CoordinationError):
        leader.look()
    several.store.come_back()
    leader.look()
    leader.write_events(leading=True)
    standby = several.master()
    standby.look()
    assert words(standby) == ["ann: stop"]
