"""A replica that does not gain on its siblings takes their checkpoint again; one that gains goes on."""

from __future__ import annotations

import pytest

from penstock.replication.catching_up import CatchingUp

HEAD_RATE = 4


def seconds_until_copy(rate: float, behind: int, start_took: float = 2.0, watched: float = 60.0) -> float | None:
    """A replica starts so many epochs behind, then does `rate` a second; its siblings do four."""
    judge = CatchingUp(10)
    judge.begins(0.0, 100)
    for step in range(int(watched * 4)):
        now = start_took + step / 4
        own, head = 101 + int(rate * (now - start_took)), 101 + behind + int(HEAD_RATE * (now - start_took))
        if judge.should_copy(now, min(own, head), head):
            return now
    return None


def test_one_that_gains_fast_is_left_to_replay() -> None:
    assert seconds_until_copy(rate=14, behind=40) is None


@pytest.mark.parametrize("rate", [HEAD_RATE - 2, HEAD_RATE, HEAD_RATE + 1])
def test_one_that_does_not_gain_copies_once_that_is_seen(rate: float) -> None:
    copied = seconds_until_copy(rate, behind=40)
    assert copied is not None
    assert 4.0 <= copied - 2.0 <= 6.0


def test_a_few_epochs_are_replayed_whatever_the_pace() -> None:
    assert seconds_until_copy(rate=HEAD_RATE, behind=8) is None


def test_a_slow_start_makes_a_copy_worth_less() -> None:
    assert seconds_until_copy(rate=HEAD_RATE + 3, behind=40, start_took=2.0) is not None
    assert seconds_until_copy(rate=HEAD_RATE + 3, behind=40, start_took=20.0) is None


def test_nothing_is_copied_before_the_first_epoch_is_done() -> None:
    judge = CatchingUp(10)
    judge.begins(0.0, 100)
    assert not any(judge.should_copy(second, 100, 200 + second) for second in range(60))


def test_where_copies_do_not_help_they_end() -> None:
    judge = CatchingUp(10)
    copies = 0
    for start in range(10):
        judge.begins(start * 100.0, 100)
        if any(judge.should_copy(start * 100.0 + second, 101, 200) for second in range(1, 20)):
            judge.copies()
            copies += 1
    assert copies == 4
