"""For which share of the time a run is at work."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from penstock.runtime.work_share import WINDOW_SECONDS, WorkShare


@dataclass
class Run:
    """Epochs that take as long as they are told to, by a clock that goes when it is told to."""

    now: float = 100.0
    work: WorkShare = field(init=False)

    def __post_init__(self) -> None:
        self.work = WorkShare(lambda: self.now)

    def epoch(self, takes: float, age: float = 0.0) -> None:
        with self.work.at_work(age):
            self.now += takes

    def rest(self, seconds: float) -> None:
        self.now += seconds


def test_it_is_the_work_of_the_last_seconds() -> None:
    run = Run()
    assert run.work.share() == 0.0
    for _ in range(20):
        run.epoch(0.5)
        run.rest(1.5)
    assert run.work.share() == 0.25
    run.rest(WINDOW_SECONDS / 2)
    assert 0.1 <= run.work.share() <= 0.15
    run.rest(WINDOW_SECONDS)
    assert run.work.share() == 0.0


def test_one_epoch_after_the_other_is_all_there_can_be_though_spark_takes_a_part_of_each() -> None:
    run = Run()
    for _ in range(50):
        # It is cut at once; for a third of its time nobody here hears of it.
        run.rest(0.1)
        run.epoch(0.2, age=0.1)
    assert run.work.share() == 1.0


def test_what_waited_for_the_epoch_before_counts_once() -> None:
    run = Run()
    run.rest(60)
    for _ in range(4):
        # As in a replica that is late: its siblings have cut them long ago.
        run.epoch(0.5, age=1000.0 if run.now > 160.0 else 0.0)
    assert run.work.share() == 2.0 / WINDOW_SECONDS


def test_a_long_epoch_is_work_before_it_is_done() -> None:
    run = Run()
    with run.work.at_work(0.0):
        run.now += 3 * WINDOW_SECONDS
        assert run.work.share() == 1.0


def test_one_that_is_held_up_is_not_at_work() -> None:
    run = Run()
    run.rest(20)
    run.work.was_held()
    run.epoch(1.0, age=20.0)
    assert run.work.share() == 1.0 / WINDOW_SECONDS


def test_a_cut_by_a_clock_that_is_ahead_is_one_of_now() -> None:
    run = Run()
    run.rest(20)
    run.epoch(1.0, age=-500.0)
    assert run.work.share() == 1.0 / WINDOW_SECONDS


def test_all_that_an_epoch_has_taken_begins_with_its_cut_or_the_end_of_the_one_before() -> None:
    run = Run()
    run.rest(60)
    assert run.work.so_far() == 0.0
    with run.work.at_work(age=2.0):
        run.now += 1.0
        assert run.work.so_far() == 3.0
    run.rest(0.5)
    with run.work.at_work(age=100.0):
        run.now += 1.0
        assert run.work.so_far() == 1.5
    assert run.work.so_far() == 0.0


def test_a_failed_epoch_is_no_work_any_more() -> None:
    run = Run()
    with pytest.raises(OSError, match="full"), run.work.at_work(0.0):
        run.now += 1.0
        raise OSError("the disk is full")
    run.rest(3 * WINDOW_SECONDS)
    assert run.work.share() == 0.0
