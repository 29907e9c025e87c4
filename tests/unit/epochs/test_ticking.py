from __future__ import annotations

from penstock import Topology
from penstock.epochs.ticking import TickRules, Ticks, tick_rules

MINUTE = 60_000
NOON = 1_000_000 * MINUTE


def test_without_windows_only_the_users_own_tick_is_cut() -> None:
    assert not Ticks(TickRules()).due(3, 1000, True, 10**9)
    ticks = Ticks(TickRules(every=5000))
    assert not ticks.due(3, 1000, False, 5999)
    assert ticks.due(3, 1000, False, 6000)


def test_an_epoch_with_tuples_is_followed_by_one_empty_epoch() -> None:
    ticks = Ticks(TickRules(settle=True))
    assert not ticks.due(0, 0, False, NOON)
    assert ticks.due(1, NOON, True, NOON + 5)
    assert not ticks.due(2, NOON + 5, False, NOON + 10**6)
    assert ticks.due(3, NOON + 10**6, True, NOON + 10**6 + 1)


def test_a_window_over_the_time_of_epochs_is_closed_when_its_end_has_passed() -> None:
    ticks = Ticks(TickRules(settle=True, steps=(MINUTE,), longest=MINUTE))
    filled = NOON + 10_000
    assert ticks.due(1, filled, True, filled + 1)
    assert not ticks.due(2, filled + 1, False, NOON + MINUTE - 1)
    assert ticks.due(2, filled + 1, False, NOON + MINUTE)
    # What was told in the epoch at the end of the window is known in the one after.
    assert ticks.due(3, NOON + MINUTE, False, NOON + MINUTE + 1)
    assert not ticks.due(4, NOON + MINUTE + 1, False, NOON + MINUTE + 2)


def test_when_all_windows_over_the_time_of_epochs_are_closed_nothing_more_is_cut() -> None:
    ticks = Ticks(TickRules(settle=True, steps=(MINUTE,), longest=2 * MINUTE))
    epoch, time = 1, NOON
    cut = []
    for now in range(NOON, NOON + 20 * MINUTE, 1000):
        if ticks.due(epoch, time, epoch == 1, now):
            epoch, time = epoch + 1, now
            cut.append(now - NOON)
    assert max(cut) <= 4 * MINUTE
    assert any(each >= 2 * MINUTE for each in cut)


def test_a_session_over_the_time_of_epochs_is_closed_after_its_gap() -> None:
    ticks = Ticks(TickRules(settle=True, gaps=(5000,), longest=5000))
    assert ticks.due(1, NOON, True, NOON + 1)
    assert not ticks.due(2, NOON + 1, False, NOON + 4999)
    assert ticks.due(2, NOON + 1, False, NOON + 5000)


def test_windows_that_wait_for_an_epoch_are_not_kept_waiting_by_idle_sources() -> None:
    ticks = Ticks(TickRules(early=(3, 2)))
    assert not ticks.due(0, 0, False, NOON)
    assert ticks.due(4, NOON, True, NOON + 1)
    assert ticks.due(5, NOON + 1, False, NOON + 2)
    assert not ticks.due(6, NOON + 2, False, NOON + 10**6)
    assert not ticks.due(7, NOON + 10**6, False, NOON + 2 * 10**6)
    assert ticks.due(9, NOON + 10**6, True, NOON + 2 * 10**6)


def test_after_a_restart_the_last_epoch_counts_as_one_with_tuples() -> None:
    ticks = Ticks(TickRules(settle=True, steps=(MINUTE,), longest=MINUTE))
    assert ticks.due(7, NOON, False, NOON + 1)
    assert not ticks.due(8, NOON + 1, False, NOON + 2)
    assert ticks.due(8, NOON + 1, False, NOON + MINUTE)


def test_the_rules_follow_from_the_windows() -> None:
    stream = Topology("t").source("clicks", file="x.csv", schema="user string, at timestamp")
    on_time = stream.window("tumbling(1 minute)", on="at", compute="count() as n")
    assert tick_rules(on_time.sink("out", console=True)) == TickRules(settle=True)
    of_epochs = on_time.topology.stream("clicks").window("sliding(1 minute, 10s)", compute="count() as n")
    both = of_epochs.topology.stream("clicks").window("session(5s)", compute="count() as n").sink("out", console=True)
    assert tick_rules(both) == TickRules(settle=True, steps=(10_000,), gaps=(5000,), longest=60_000)
    changes = stream.window("tumbling(1 minute)", compute="count() as n", emit="changes").sink("out", console=True)
    assert tick_rules(changes) == TickRules()


def test_an_epoch_that_comes_so_late_that_it_ends_others_is_followed_by_another() -> None:
    ticks = Ticks(TickRules(settle=True, steps=(200,), longest=2200))
    assert ticks.due(1, 1000, True, 40_000)
    assert ticks.due(2, 40_000, False, 40_100)
    assert not ticks.due(3, 40_100, False, 80_000)
