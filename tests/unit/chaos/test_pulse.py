from __future__ import annotations

from penstock.chaos.pulse import Pulse


def test_the_longest_pause_lies_between_two_committed_epochs() -> None:
    pulse = Pulse()
    seen = [pulse.note(epoch, now) for epoch, now in [(0, 1.0), (1, 20.0), (1, 21.0), (2, 21.5), (5, 30.5), (6, 31.0)]]
    assert seen == [False, True, False, True, True, True]
    assert (pulse.epoch, pulse.longest_pause, pulse.paused_after) == (6, 9.0, 2)


def test_the_start_before_the_first_epoch_is_no_pause() -> None:
    pulse = Pulse()
    pulse.note(1, 100.0)
    assert pulse.longest_pause == 0.0


def test_the_pace_is_that_of_most_epochs() -> None:
    pulse = Pulse()
    assert pulse.pace == 0.0
    for epoch, now in [(1, 10.0), (2, 10.5), (3, 30.5), (5, 31.5), (6, 32.0)]:
        pulse.note(epoch, now)
    assert pulse.pace == 0.5


def test_a_start_does_not_change_the_pace() -> None:
    pulse = Pulse()
    pulse.note(1, 10.0)
    pulse.note(2, 10.5)
    pulse.start()
    pulse.note(3, 40.0)
    assert (pulse.pace, pulse.longest_pause) == (0.5, 29.5)
    pulse.note(4, 41.5)
    assert pulse.pace == 1.0
