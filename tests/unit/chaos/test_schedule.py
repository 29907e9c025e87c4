from __future__ import annotations

from collections import Counter

import pytest

from penstock.chaos.schedule import DEEP, Act, Disturbance, schedule
from penstock.epochs.moments import Moment

KILL = "kill -9"


def kills_of(planned: list[Disturbance]) -> list[Disturbance]:
    return [one for one in planned if one.act.startswith(KILL)]


def test_the_same_seed_gives_the_same_schedule_and_another_seed_another() -> None:
    assert schedule(20, 7, 70) == schedule(20, 7, 70)
    assert schedule(20, 7, 70) != schedule(20, 8, 70)


@pytest.mark.parametrize("kills", [0, 1, 5, 20])
def test_there_are_as_many_kills_as_asked_for(kills: int) -> None:
    planned = schedule(kills, 1, 3 * kills + 10)
    assert len(kills_of(planned)) == kills
    assert [one.number for one in planned] == list(range(1, len(planned) + 1))


def test_every_schedule_freezes_and_restarts_as_well() -> None:
    counted = Counter(one.act for one in schedule(20, 1, 70))
    assert counted[Act.FREEZE] == counted[Act.RESTART] == 4
    few = Counter(one.act for one in schedule(1, 1, 13))
    assert few[Act.FREEZE] == few[Act.RESTART] == 1


@pytest.mark.parametrize("seed", range(20))
def test_eight_kills_meet_every_moment_and_every_victim(seed: int) -> None:
    kills = kills_of(schedule(8, seed, 34))
    assert {one.moment for one in kills} == {None, *Moment}
    assert {one.act for one in kills if one.moment is None} == {
        Act.KILL_ALL, Act.KILL_DRIVER, Act.KILL_JVM, Act.KILL_WORKER}  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_a_single_kill_falls_between_the_sinks(seed: int) -> None:
    (kill,) = kills_of(schedule(1, seed, 13))
    assert (kill.act, kill.moment) == (Act.KILL_DRIVER, Moment.BETWEEN_SINKS)


@pytest.mark.parametrize("seed", range(20))
def test_epochs_rise_and_leave_the_last_one_alone(seed: int) -> None:
    planned = schedule(10, seed, 40)
    epochs = [one.epoch for one in planned]
    assert epochs == sorted(epochs)
    assert epochs[0] >= 1
    assert epochs[-1] < 40
    assert len(set(epochs)) == len(epochs)


def test_an_input_of_one_epoch_is_disturbed_before_it_is_committed() -> None:
    assert {one.epoch for one in schedule(3, 1, 1)} == {0}


def test_a_deep_schedule_damages_everything_once() -> None:
    counted = Counter(one.act for one in schedule(5, 3, 30, deep=True))
    assert [counted[act] for act in DEEP] == [1, 1, 1, 1]
    assert not set(DEEP) & {one.act for one in schedule(5, 3, 30)}


@pytest.mark.parametrize("kills", [0, 1, 6, 20])
def test_rescales_come_in_their_order_between_the_others(kills: int) -> None:
    planned = schedule(kills, 3, 4 * kills + 18, rescales=[("counts", 5), ("counts", 3)])
    places = [place for place, one in enumerate(planned) if one.act is Act.RESCALE]
    assert [(planned[place].operator, planned[place].instances) for place in places] == [("counts", 5), ("counts", 3)]
    assert 0 < places[0] < places[1] - 1 or kills == 0
    assert places[1] < len(planned) - 1 or kills == 0
    assert len(kills_of(planned)) == kills


def test_rescales_change_nothing_else_about_a_schedule() -> None:
    others = [(one.act, one.moment) for one in schedule(6, 3, 40, rescales=[("counts", 5)])
              if one.act is not Act.RESCALE]
    assert others == [(one.act, one.moment) for one in schedule(6, 3, 40)]


def test_a_freeze_lasts_and_a_kill_does_not() -> None:
    for one in schedule(20, 5, 70):
        assert (one.seconds > 0) == (one.act is Act.FREEZE)


def test_a_disturbance_says_what_it_does() -> None:
    assert str(Disturbance(1, Act.KILL_JVM, 3, Moment.BETWEEN_SINKS)) == "kill -9 of the JVM, between-sinks"
    assert str(Disturbance(1, Act.FREEZE, 3, seconds=2.0)) == "freeze for 2.0 s"
    assert str(Disturbance(1, Act.RESCALE, 3, operator="counts", instances=5)) == "rescale counts=5"


@pytest.mark.parametrize("seed", range(5))
def test_of_replicas_one_at_a_time_is_struck_and_their_supervisor_is_killed(seed: int) -> None:
    planned = schedule(20, seed, 70, replicas=3)
    assert Counter(one.act for one in planned)[Act.KILL_SUPERVISOR] == 4
    assert Act.RESTART not in {one.act for one in planned}
    for one in planned:
        whole = one.moment is None and one.act is not Act.KILL_SUPERVISOR
        assert (one.replica in (1, 2, 3)) if whole else (one.replica == 0)
    assert {one.replica for one in planned if one.moment is None} == {0, 1, 2, 3}


def test_what_is_done_to_a_replica_is_said_with_its_number() -> None:
    assert str(Disturbance(1, Act.KILL_JVM, 3, replica=2)) == "kill -9 of the JVM of replica 2"
    assert str(Disturbance(1, Act.FREEZE, 3, seconds=2.5, replica=1)) == "freeze of replica 1 for 2.5 s"
