from __future__ import annotations

from penstock.epochs.record import EpochRecord
from penstock.runtime.tuple_age import TupleAge


def epoch(number: int, cut_ms: int, tuples: int = 5) -> EpochRecord:
    return EpochRecord(number, cut_ms, {}, {"s": tuples})


def test_tuples_have_come_between_two_cuts() -> None:
    age = TupleAge(interval=1.0)
    age.delivered(epoch(1, 10_000), 200.0, 10_200.0)
    assert age.ms == 200.0
    age.delivered(epoch(2, 11_000), 300.0, 11_300.0)
    assert age.ms == 300.0 + 500.0


def test_after_a_pause_it_has_been_looked_for_them_all_the_time() -> None:
    age = TupleAge()
    age.delivered(epoch(1, 10_000), 200.0, 10_200.0)
    age.delivered(epoch(2, 70_000), 300.0, 70_300.0)
    assert age.ms == 300.0 + 100.0


def test_while_an_epoch_was_worked_on_nobody_looked() -> None:
    age = TupleAge()
    age.delivered(epoch(1, 10_000), 4_000.0, 14_000.0)
    age.delivered(epoch(2, 14_000), 100.0, 14_100.0)
    assert age.ms == 100.0 + 2_000.0


def test_an_epoch_without_tuples_says_nothing_of_their_age() -> None:
    age = TupleAge(interval=1.0)
    age.delivered(epoch(1, 10_000), 200.0, 10_200.0)
    age.delivered(epoch(2, 11_000, tuples=0), 900.0, 11_900.0)
    assert age.ms == 200.0


def test_a_clock_that_is_behind_makes_no_tuple_younger_than_nothing() -> None:
    age = TupleAge()
    age.delivered(epoch(1, 10_000), 0.0, 4_000.0)
    assert age.ms == 0.0
