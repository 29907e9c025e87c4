from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.replication.lifecycle import (
    MOST_FAILURES,
    STALL_SECONDS,
    START_PATIENCE_SECONDS,
    Action,
    Head,
    Phase,
    Sight,
    decide,
    is_cold,
    may_be_late,
    phase_of,
    safety,
)

NOW = 1000.0
HEALTHY = Sight(alive=True, seen=True, registered=True, epoch=100, started=900.0, moved=999.5)
HEAD = Head(epoch=101, moved=999.9, took=0.5)


def test_a_healthy_replica_is_left_alone() -> None:
    assert decide(HEALTHY, HEAD, NOW) is Action.NOTHING
    assert phase_of(HEALTHY, HEAD) is Phase.SAFE


def test_one_that_is_frozen_by_order_is_left_alone_however_far_behind() -> None:
    frozen = replace(HEALTHY, frozen=True, epoch=1, moved=0.0)
    assert decide(frozen, HEAD, NOW) is Action.NOTHING
    assert phase_of(frozen, HEAD) is Phase.FROZEN
    assert decide(replace(frozen, registered=False), HEAD, NOW) is Action.KILL
    assert decide(replace(frozen, alive=False), HEAD, NOW) is Action.START


def test_one_that_has_found_nothing_to_do_since_its_start_has_caught_up() -> None:
    idle = replace(HEALTHY, epoch=0, idle=100)
    assert phase_of(idle, Head()) is Phase.SAFE
    assert phase_of(idle, HEAD) is Phase.SAFE
    # It said so before the others went on.
    assert phase_of(idle, replace(HEAD, epoch=102)) is Phase.STARTING
    assert phase_of(replace(idle, idle=None), HEAD) is Phase.STARTING
    assert phase_of(replace(idle, idle=0), Head()) is Phase.SAFE


def test_one_that_changes_its_state_is_left_alone_however_long_that_takes() -> None:
    changing = replace(HEALTHY, changing=True, moved=0.0)
    assert decide(changing, HEAD, NOW) is Action.NOTHING
    # Nobody is to take it for one that could go on alone.
    assert phase_of(changing, HEAD) is Phase.RECOVERING
    assert decide(replace(changing, registered=False), HEAD, NOW) is Action.KILL


def test_one_that_is_gone_is_started_at_once() -> None:
    gone = replace(HEALTHY, alive=False, registered=False)
    assert decide(gone, HEAD, NOW) is Action.START
    assert phase_of(gone, HEAD) is Phase.DOWN


def test_one_that_fails_again_and_again_is_parked() -> None:
    gone = Sight(failures=MOST_FAILURES - 1)
    assert decide(gone, HEAD, NOW) is Action.START
    assert decide(replace(gone, failures=MOST_FAILURES), HEAD, NOW) is Action.PARK
    assert decide(replace(gone, parked=True), HEAD, NOW) is Action.NOTHING
    assert phase_of(replace(gone, parked=True), HEAD) is Phase.PARKED


def test_one_that_is_frozen_is_killed_when_its_lease_is_over() -> None:
    assert decide(replace(HEALTHY, registered=False), HEAD, NOW) is Action.KILL


def test_one_that_is_only_starting_has_not_lost_its_lease() -> None:
    starting = Sight(alive=True, started=NOW - 20)
    assert decide(starting, HEAD, NOW) is Action.NOTHING
    assert phase_of(starting, HEAD) is Phase.STARTING
    assert decide(starting, HEAD, starting.started + START_PATIENCE_SECONDS + 1) is Action.KILL


def test_one_that_has_nothing_to_do_is_left_alone_until_others_have() -> None:
    waiting = Sight(alive=True, seen=True, registered=True, running=True, started=NOW)
    later = NOW + 10 * START_PATIENCE_SECONDS
    assert decide(waiting, Head(), later) is Action.NOTHING
    assert decide(waiting, Head(epoch=7, moved=NOW - 1), later) is Action.NOTHING
    assert decide(waiting, Head(epoch=8, moved=NOW + 1), later) is Action.KILL
    # One that has never said anything hangs.
    assert decide(replace(waiting, running=False), Head(), later) is Action.KILL


def test_one_that_is_stuck_while_its_siblings_go_on_is_killed() -> None:
    stuck = replace(HEALTHY, moved=NOW - STALL_SECONDS - 2, passed=NOW - STALL_SECONDS - 1)
    assert decide(stuck, HEAD, NOW) is Action.KILL
    # When all stand still, nobody is stuck: there is no input, or no coordinator.
    assert decide(stuck, replace(HEAD, epoch=100, moved=stuck.moved), NOW) is Action.NOTHING


def test_slow_epochs_are_not_stuck_ones() -> None:
    slow = replace(HEALTHY, moved=NOW - 70, passed=NOW - 60)
    assert decide(slow, replace(HEAD, took=30.0), NOW) is Action.NOTHING
    assert decide(slow, replace(HEAD, took=14.0), NOW) is Action.KILL


def test_one_is_not_stuck_because_there_was_nothing_to_do_for_long() -> None:
    late = replace(HEALTHY, moved=NOW - 3600, passed=NOW - 1)
    assert decide(late, HEAD, NOW) is Action.NOTHING
    assert decide(late, HEAD, NOW + STALL_SECONDS) is Action.KILL
    # It gains on them, if slowly.
    assert decide(replace(late, moved=NOW), replace(HEAD, moved=NOW + 1), NOW + STALL_SECONDS) is Action.NOTHING


def test_it_is_safe_only_when_it_has_caught_up() -> None:
    assert phase_of(replace(HEALTHY, epoch=40), HEAD) is Phase.RECOVERING


def test_one_that_has_ended_is_done() -> None:
    ended = replace(HEALTHY, alive=False, registered=False, ended=True)
    assert decide(ended, HEAD, NOW) is Action.NOTHING
    assert phase_of(ended, HEAD) is Phase.ENDED


@pytest.mark.parametrize(
    ("behind", "whole", "safe"),
    [
        (0, 3.0, True), (1, 3.0, True),
        # Cold: two epochs of this length would be seen as a gap.
        (2, 0.6, False),
        # Fast: it is done before anybody looks.
        (2, 0.2, True), (9, 0.05, True), (11, 0.05, False),
        (2, 0.0, False), (340, 0.0, False),
    ],
)
def test_one_is_safe_when_what_it_has_left_to_do_takes_no_time(behind: int, whole: float, safe: bool) -> None:
    sight = replace(HEALTHY, epoch=HEAD.epoch - behind, whole=whole)
    assert phase_of(sight, HEAD) is (Phase.SAFE if safe else Phase.RECOVERING)


def test_one_that_has_caught_up_may_be_slower_for_a_moment() -> None:
    assert phase_of(replace(HEALTHY, epoch=HEAD.epoch - 2, whole=3.0, caught_up=True), HEAD) is Phase.SAFE
    assert phase_of(replace(HEALTHY, epoch=HEAD.epoch - 3, whole=3.0, caught_up=True), HEAD) is Phase.RECOVERING


def test_one_that_takes_nearly_as_long_as_epochs_are_apart_may_not_be_late_twice() -> None:
    # Three epochs of so long, in the time of two.
    assert may_be_late(1.6, 2.5)
    assert not may_be_late(1.8, 2.5)
    assert may_be_late(0.3, 0.0)
    assert not may_be_late(0.4, 0.0)


@pytest.mark.parametrize(
    ("phases", "behind", "said"),
    [
        ([Phase.SAFE, Phase.SAFE], 0, "2/2 safe"),
        ([Phase.SAFE, Phase.RECOVERING], 340, "1/2 safe, recovering, 340 epochs behind"),
        ([Phase.SAFE, Phase.DOWN, Phase.PARKED], 0, "1/3 safe, down, parked"),
        ([Phase.SAFE, Phase.STARTING, Phase.STARTING], 7, "1/3 safe, starting"),
        ([Phase.ENDED, Phase.ENDED], 0, "ended"),
    ],
)
def test_one_line_tells_how_safe_a_topology_is(phases: list[Phase], behind: int, said: str) -> None:
    assert safety(phases, behind) == said


@pytest.mark.parametrize(("whole", "interval", "since_first", "cold"), [
    (3.0, 2.5, 5.0, True),
    (2.0, 2.5, 5.0, False),
    (0.4, 0.0, 1.0, False),
    (0.6, 0.0, 1.0, True),
    (3.0, 0.0, 61.0, False),
])  # fmt: skip
def test_one_that_would_be_late_alone_is_still_starting(
    whole: float, interval: float, since_first: float, cold: bool
) -> None:
    assert is_cold(whole, interval, since_first) is cold
    assert phase_of(replace(HEALTHY, cold=cold), HEAD) is (Phase.STARTING if cold else Phase.SAFE)
    assert phase_of(replace(HEALTHY, epoch=40, cold=cold), HEAD) is Phase.RECOVERING
