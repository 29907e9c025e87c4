"""Which replica delivered each epoch, and whether anything was late when one was lost."""

from __future__ import annotations

from typing import Any

from penstock.console.events import Event
from penstock.console.timeline import Timeline

from .running_console import view

BOTH = [view("1"), view("2")]
ONE_GONE = [view("1"), view("2", "down", process=None)]


def look(timeline: Timeline, seen: dict[str, Any]) -> list[Event]:
    return timeline.take("t", seen, seen["at"])


def seen(at: float, epoch: int, replicas: list[dict[str, Any]] = BOTH, **more: Any) -> dict[str, Any]:
    return {"how": "running", "at": at, "epoch": epoch, "replicas": replicas, "progress": None, **more}


def steady(timeline: Timeline, begin: int, end: int, replicas: list[dict[str, Any]] = BOTH) -> list[str]:
    """An epoch a second; what is said."""
    return [event.words for at in range(begin, end) for event in look(timeline, seen(at, at, replicas))]


def test_each_epoch_has_the_replica_that_delivered_it() -> None:
    timeline = Timeline()
    look(timeline, seen(10.0, 4, delivered_by=[3, "12"]))
    look(timeline, seen(11.0, 6, delivered_by=[4, "21"]))
    assert list(timeline.epochs) == [(4, 10.0, "2"), (5, 10.5, "1"), (6, 11.0, "")]
    # Who was first is only known a moment later.
    look(timeline, seen(11.2, 6, delivered_by=[5, "-2"]))
    assert timeline.epochs[-1] == (6, 11.0, "2")


def test_an_epoch_is_when_the_topology_itself_saw_it_done() -> None:
    timeline = Timeline()
    look(timeline, seen(10.0, 4, progress={"epoch": 4, "moved": 9.7}))
    look(timeline, seen(11.0, 5, progress={"epoch": 4, "moved": 9.7}))
    assert [epoch.time for epoch in timeline.epochs] == [9.7, 11.0]


def test_one_that_begins_anew_has_a_new_timeline() -> None:
    timeline = Timeline()
    steady(timeline, 10, 15)
    look(timeline, seen(20.0, 1))
    assert [epoch.epoch for epoch in timeline.epochs] == [1]


def test_nothing_was_late_is_said_when_it_was_measured() -> None:
    timeline = Timeline()
    assert steady(timeline, 10, 20) == []
    (words,) = steady(timeline, 20, 40, ONE_GONE)
    assert words.endswith("; nothing was late: at most 1.0 s between epochs, 1.0 s before")
    assert words.startswith("replica 2 on node-b was gone at ")


def test_it_was_gone_where_it_was_and_not_where_it_is_now() -> None:
    for gone in (view("2", "down", process=None, host=""), view("2", process=999, host="node-c")):
        timeline = Timeline()
        steady(timeline, 10, 20)
        (words,) = steady(timeline, 20, 40, [view("1"), gone])
        assert words.startswith("replica 2 on node-b was gone at ")


def test_one_that_is_back_before_anybody_has_looked_was_lost_too() -> None:
    timeline = Timeline()
    steady(timeline, 10, 20)
    assert len(steady(timeline, 20, 40, [view("1"), view("2", process=999)])) == 1


def test_what_was_late_is_said_with_how_much() -> None:
    timeline = Timeline()
    steady(timeline, 10, 20)
    # The next epoch comes three seconds later, and nothing is said before.
    assert [event.words for at in (20, 21, 22) for event in look(timeline, seen(at, 19, ONE_GONE))] == []
    (words,) = steady(timeline, 23, 40, ONE_GONE)
    assert words.endswith("; output was late: 4.0 s between two epochs, at most 1.0 s before")


def test_nothing_is_said_while_output_pauses() -> None:
    timeline = Timeline()
    steady(timeline, 10, 20)
    said = [event for at in range(20, 60) for event in look(timeline, seen(at, 19, ONE_GONE))]
    assert said == []


def test_a_source_that_has_nothing_for_long_after_a_loss_leaves_open_what_was_late() -> None:
    timeline = Timeline()
    steady(timeline, 10, 20)
    (said,) = [event for at in range(20, 3600) for event in look(timeline, seen(at, 19, ONE_GONE))]
    assert said.words.startswith("replica 2 on node-b was gone at ") and "; nothing has come since " in said.words
    assert steady(timeline, 3600, 3620, ONE_GONE) == []


def test_a_loss_is_told_where_nobody_knows_what_is_usual() -> None:
    timeline = Timeline()
    steady(timeline, 10, 12)
    (words,) = steady(timeline, 12, 40, ONE_GONE)
    assert words.endswith("; too few epochs came before it to say whether anything was late")


def test_a_look_without_replicas_hides_no_loss() -> None:
    """The coordinator may be too busy to say who is there, at the very moment at which one is gone."""
    timeline = Timeline()
    steady(timeline, 10, 20)
    steady(timeline, 20, 21, [])
    (words,) = steady(timeline, 21, 40, ONE_GONE)
    assert words.startswith("replica 2 on node-b was gone at ")


def test_who_is_stopped_with_its_topology_is_not_missed() -> None:
    timeline = Timeline()
    steady(timeline, 10, 20)
    look(timeline, seen(20.0, 20, ONE_GONE) | {"how": "stopping"})
    assert steady(timeline, 21, 40, ONE_GONE) == []
