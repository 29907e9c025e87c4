from __future__ import annotations

from penstock.replication.lifecycle import Phase
from penstock.replication.roster import CHANGING, ENDED, FAILED, PARKED, Member, Told
from penstock.replication.views import all_safe, safety_of, views_of


def member(name: str, run: str) -> Member:
    return Member(name, "local", "here", 40, run)


def test_replicas_are_seen_by_what_they_say() -> None:
    members = {"1": member("1", "a"), "2": member("2", "b")}
    views = views_of(members, {"1": Told("a", 400, 300), "2": Told("b", 60, 100)})
    assert [(view.name, view.phase, view.behind, view.first) for view in views] == [
        ("1", Phase.SAFE, 0, 300), ("2", Phase.RECOVERING, 340, 100)]
    assert safety_of(views) == "1/2 safe, recovering, 340 epochs behind"


def test_what_an_earlier_start_has_said_is_not_about_this_one() -> None:
    (view,) = views_of({"1": member("1", "new")}, {"1": Told("old", 400)})
    assert (view.phase, view.epoch) == (Phase.STARTING, 0)


def test_one_that_gives_no_sign_of_life_is_down_with_its_reason() -> None:
    failed = Told("b", 7, how=FAILED, why="the disk is full")
    views = views_of({"1": member("1", "a")}, {"1": Told("a", 9), "2": failed})
    assert [(view.phase, view.why) for view in views] == [(Phase.SAFE, ""), (Phase.DOWN, "the disk is full")]
    assert safety_of(views) == "1/2 safe, down"


def test_one_that_is_not_started_any_more_is_parked_with_its_reason() -> None:
    parked = Told("b", 7, how=PARKED, why="the disk is full")
    views = views_of({"1": member("1", "a")}, {"1": Told("a", 9), "2": parked})
    assert [(view.phase, view.why) for view in views] == [(Phase.SAFE, ""), (Phase.PARKED, "the disk is full")]
    assert safety_of(views) == "1/2 safe, parked"
    # It has signed in again.
    (_, again) = views_of({"1": member("1", "a"), "2": member("2", "c")}, {"1": Told("a", 9), "2": parked})
    assert (again.phase, again.why) == (Phase.STARTING, "")


def test_one_that_has_never_spoken_is_down_where_another_has() -> None:
    views = views_of({"1": member("1", "a")}, {"1": Told("a", 9)}, ["1", "2"])
    assert [(view.name, view.phase) for view in views] == [("1", Phase.SAFE), ("2", Phase.DOWN)]
    assert safety_of(views) == "1/2 safe, down"
    assert views_of({}, {}, ["1", "2"]) == []


def test_where_there_is_nothing_to_do_no_further_epoch_is_waited_for() -> None:
    members = {"1": member("1", "a"), "2": member("2", "b")}
    told = {"1": Told("a", 9), "2": Told("b", 9)}
    assert not all_safe(["1", "2"], members, told, after=9)
    told = {"1": Told("a", 9, idle=9), "2": Told("b", 0, idle=9)}
    assert all_safe(["1", "2"], members, told, after=9)
    assert [(view.phase, view.epoch) for view in views_of(members, told)] == [(Phase.SAFE, 9), (Phase.SAFE, 9)]
    # One that has not done the epoch yet that is waited for has not seen that it has something to do.
    assert not all_safe(["1", "2"], members, told | {"2": Told("b", 0, idle=8)}, after=9)
    assert not all_safe(["1", "2"], members, told | {"2": Told("b", 0)}, after=9)
    assert not all_safe(["1", "2"], members, told | {"1": Told("a", 9, idle=9, how=CHANGING)}, after=9)


def test_at_the_end_nobody_is_unsafe() -> None:
    assert safety_of(views_of({}, {"1": Told("a", 9, how=ENDED), "2": Told("b", 9, how=ENDED)})) == "ended"
