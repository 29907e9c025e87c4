from __future__ import annotations

from penstock.epochs.ahead import SOONEST_SECONDS, is_due


def epochs(frozen_for: float) -> int:
    """How many are cut while a run is frozen for so long."""
    now, cut_at, number = 0.0, 0.0, 0
    while now < frozen_for:
        now += 0.25
        if is_due(now, now - cut_at):
            cut_at, number = now, number + 1
    return number


def test_one_is_cut_soon_and_none_sooner() -> None:
    assert not is_due(1.0, SOONEST_SECONDS / 2)
    assert is_due(1.0, SOONEST_SECONDS)
    assert epochs(10) == 20


def test_what_an_epoch_had_no_room_for_is_not_left_waiting() -> None:
    assert not is_due(3600.0, 1.0)
    assert is_due(3600.0, 1.0, more_waits=True)
    assert not is_due(3600.0, SOONEST_SECONDS / 2, more_waits=True)


def test_the_longer_it_lasts_the_seldomer() -> None:
    hour, day = epochs(3600), epochs(24 * 3600)
    assert 250 < hour < 350
    assert day < 2 * hour
