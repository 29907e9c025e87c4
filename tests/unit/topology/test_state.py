"""Values, lists, maps and timers of a key: what they keep, for how long, and that it can be undone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from penstock.topology.state import KeyedState, Timers, drop_empty, next_wake
from penstock.topology.state_encoding import Remembered, decode, encode

NOW = 1_700_000_000_000


def opened(remembered: Remembered | None = None, now: int = NOW, undoable: bool = True) -> KeyedState:
    return KeyedState(remembered or Remembered(), now, undoable=undoable)


def reopened(state: KeyedState, after: timedelta = timedelta(0)) -> KeyedState:
    """The state in a later epoch, as it comes back from the store."""
    later = state.now_ms + int(after.total_seconds() * 1000)
    return opened(decode(encode(state.remembered)), later)


def test_a_value_has_its_default_until_it_is_set() -> None:
    total = opened().value("total", 0.0)
    assert total.get() == 0.0
    total.set(2.5)
    assert total.get() == 2.5
    total.clear()
    assert total.get() == 0.0


def test_a_value_that_was_set_to_none_is_not_absent() -> None:
    state = opened()
    state.value("seen", "never").set(None)
    assert reopened(state).value("seen", "never").get() is None


def test_a_list_is_appended_to_read_and_replaced() -> None:
    state = opened()
    history = state.list("history")
    history.append(1)
    history.extend([2, 3])
    assert (list(history), len(history), history[0], history[-2:]) == ([1, 2, 3], 3, 1, [2, 3])
    history.set(history[-1:])
    assert list(reopened(state).list("history")) == [3]
    history.clear()
    assert not history


def test_a_map_is_a_mapping() -> None:
    state = opened()
    seen = state.map("seen")
    seen["a"] = 1
    seen.update(b=2, c=3)
    del seen["b"]
    assert seen.pop("c") == 3
    assert dict(reopened(state).map("seen")) == {"a": 1}
    assert ("a" in seen, seen.get("x", 9), len(seen)) == (True, 9, 1)
    with pytest.raises(KeyError):
        del seen["x"]


def test_a_name_is_of_one_kind() -> None:
    state = opened()
    state.list("x").append(1)
    with pytest.raises(TypeError, match="'x' is a list"):
        state.value("x").get()


def test_what_cannot_be_kept_is_refused_at_once() -> None:
    state = opened()
    for keep in (state.value("v").set, state.list("l").append, lambda value: state.map("m").update(k=value)):
        with pytest.raises(TypeError, match="plain values only"):
            keep([object()])
    assert state.remembered.empty


def test_a_value_ends_after_its_time_to_live_and_each_write_begins_it_anew() -> None:
    state = opened()
    state.value("a", ttl=60).set(1)
    assert reopened(state, timedelta(seconds=59)).value("a").get() == 1
    later = reopened(state, timedelta(seconds=59))
    later.value("a", ttl=timedelta(minutes=1)).set(2)
    assert reopened(later, timedelta(seconds=59)).value("a").get() == 2
    assert reopened(later, timedelta(seconds=60)).value("a").get() is None


def test_elements_and_entries_end_one_by_one() -> None:
    state = opened()
    state.list("l", ttl=10).append("early")
    state.map("m", ttl=10)["early"] = 1
    state.list("stays").append("for ever")
    later = reopened(state, timedelta(seconds=5))
    later.list("l", ttl=10).append("late")
    later.map("m", ttl=10)["late"] = 2
    last = reopened(later, timedelta(seconds=5))
    assert list(last.list("l")) == ["late"]
    assert dict(last.map("m")) == {"late": 2}
    assert list(last.list("stays")) == ["for ever"]
    assert last.touched


def test_elements_from_before_a_time_to_live_was_given_stay() -> None:
    state = opened()
    state.list("l").append("old")
    state.list("l", ttl=10).append("new")
    assert list(reopened(state, timedelta(seconds=11)).list("l")) == ["old"]


def test_reading_touches_nothing_but_lending_may() -> None:
    state = opened()
    state.value("number").set(1)
    state.value("names").set(["a"])
    later = reopened(state)
    assert later.value("number").get() == 1
    assert not later.touched
    later.value("names").get().append("b")
    assert later.touched
    assert reopened(later).value("names").get() == ["a", "b"]


CHANGES: dict[str, Callable[[KeyedState], object]] = {
    "set a value": lambda state: state.value("v").set(2),
    "clear a value": lambda state: state.value("v").clear(),
    "a new value": lambda state: state.value("new").set(1),
    "change a value in place": lambda state: state.value("d").get().update(b=2),
    "append": lambda state: state.list("l").append(3),
    "append with a time to live": lambda state: state.list("l", ttl=5).append(3),
    "replace a list": lambda state: state.list("l").set([9]),
    "change an element in place": lambda state: state.list("ll")[0].append(9),
    "set an entry": lambda state: state.map("m").update(a=9),
    "a new entry": lambda state: state.map("m", ttl=5).update(z=9),
    "delete an entry": lambda state: state.map("m").pop("a"),
    "change an entry in place": lambda state: state.map("mm")["a"].append(9),
    "clear all": lambda state: state.clear(),
    "set a timer": lambda state: Timers(state, True).set(5, "new"),
    "move a timer": lambda state: Timers(state, True).set(5, "t"),
    "cancel a timer": lambda state: Timers(state, True).cancel("t"),
}


def filled() -> Remembered:
    state = opened()
    state.value("v").set(1)
    state.value("d").set({"a": 1})
    state.list("l").extend([1, 2])
    state.list("ll").append([1])
    state.map("m").update(a=1, b=2)
    state.map("mm").update(a=[1])
    Timers(state, True).set(60, "t")
    return state.remembered


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_undone(change: str) -> None:
    state = opened(filled())
    state.begin()
    CHANGES[change](state)
    assert state.touched
    state.undo()
    assert _content(state.remembered) == _content(filled())


def test_all_changes_together_are_undone_and_only_since_the_last_begin() -> None:
    state = opened(filled())
    state.value("v").set("kept")
    state.begin()
    for change in CHANGES.values():
        if change is not CHANGES["clear all"]:
            change(state)
    state.undo()
    assert state.value("v").get() == "kept"
    state.value("v").set(1)
    assert _content(state.remembered) == _content(filled())


def test_a_map_keeps_its_order_when_a_deletion_is_undone() -> None:
    state = opened(filled())
    state.begin()
    del state.map("m")["a"]
    state.undo()
    assert list(state.map("m")) == ["a", "b"]


def test_a_timer_is_set_moved_and_cancelled() -> None:
    state = opened()
    timers = Timers(state, True)
    timers.set(timedelta(minutes=10), "wait")
    assert timers.due("wait") == datetime.fromtimestamp(NOW / 1000, UTC) + timedelta(minutes=10)
    timers.set(datetime.fromtimestamp(NOW / 1000, UTC) + timedelta(seconds=1), "wait")
    timers.set(30)
    assert ("wait" in timers, list(timers), len(timers)) == (True, ["", "wait"], 2)
    assert state.remembered.timers["wait"] == NOW + 1000
    timers.cancel("wait")
    timers.cancel("wait")
    assert timers.due("wait") is None


def test_a_moment_without_a_zone_and_a_timer_that_nobody_hears_are_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Timers(opened(), True).set(datetime(2024, 1, 1), "x")
    with pytest.raises(TypeError, match="on_timer"):
        Timers(opened(), False).set(1, "x")


@pytest.mark.parametrize("ttl", [0, -1, timedelta(0)])
def test_a_time_to_live_of_nothing_is_refused(ttl: float | timedelta) -> None:
    with pytest.raises(ValueError, match="time to live"):
        opened().value("a", ttl=ttl)


def test_a_key_is_woken_for_its_first_timer_or_when_all_with_a_time_to_live_has_ended() -> None:
    state = opened()
    assert next_wake(state.remembered) is None
    state.list("l", ttl=10).append(1)
    state.value("v", ttl=20).set(1)
    assert next_wake(state.remembered) == NOW + 20_000
    Timers(state, True).set(15, "t")
    assert next_wake(state.remembered) == NOW + 15_000


def test_empty_lists_and_maps_are_forgotten() -> None:
    state = opened()
    state.map("m")["a"] = 1
    del state.map("m")["a"]
    drop_empty(state.remembered)
    assert state.remembered.empty


def _content(remembered: Remembered) -> object:
    items = {name: (item.kind, item.content, item.expires or None) for name, item in remembered.items.items()}
    return items, remembered.timers
