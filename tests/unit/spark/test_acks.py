"""The ledger of acks: ids, trees, late words, and waiting."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from typing import Any

import pytest

from penstock.spark.acks import AckLedger, Delivery, ack_ids
from penstock.topology.bolt import Fail


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> AckLedger:
    return AckLedger("own", 0, 30.0, clock)


def tuples(count: int) -> list[list[int]]:
    """As a task has them: equal ones are different objects."""
    return [[0] for _ in range(count)]


def numbers(deliveries: list[Any]) -> list[int]:
    return [delivery.number for delivery in deliveries]


def delivered(ledger: AckLedger, sequence: int, tup: Any) -> Delivery:
    (delivery,) = ledger.deliver([sequence], [tup])
    return delivery


def test_ids_are_the_same_every_time_and_fit_in_a_bigint() -> None:
    ids = ack_ids("own", 0, 1, [7] * 1000)
    assert ids == ack_ids("own", 0, 1, [7] * 1000)
    assert all(-(1 << 63) <= each < 1 << 63 and each for each in ids)
    assert len(set(ids)) == 1000
    assert ids[400:] == ack_ids("own", 0, 401, [7] * 600)


@pytest.mark.parametrize("other", [("else", 0, 1, [5]), ("own", 1, 1, [5]), ("own", 0, 2, [5]), ("own", 0, 1, [6])])
def test_an_id_depends_on_operator_instance_number_and_source_tuple(other: tuple[str, int, int, list[int]]) -> None:
    assert ack_ids(*other) != ack_ids("own", 0, 1, [5])


def test_ids_are_well_mixed() -> None:
    """Of a thousand neighbours every bit is set in about half, and no two of them differ as another two do."""
    for sequences in (range(1000), [3] * 1000):
        ids = [each & (1 << 64) - 1 for each in ack_ids("own", 0, 1, sequences)]
        for bit in range(64):
            assert 400 < sum(each >> bit & 1 for each in ids) < 600
        assert max(Counter(one ^ other for one, other in itertools.pairwise(ids)).values()) == 1


def test_a_tree_is_complete_when_all_its_tuples_are_acked(ledger: AckLedger) -> None:
    first, second, third = tuples(3)
    for tup, sequence in ((first, 7), (second, 7), (third, 8)):
        delivered(ledger, sequence, tup)
    for tup in (third, first):
        ledger.ack(tup)
    assert numbers(ledger.take_decided()) == [1, 3]
    assert [(delivery.sequence, delivery.number) for delivery in ledger.take_open()] == [(7, 2)]


def test_the_first_word_about_a_tuple_counts(ledger: AckLedger) -> None:
    acked, failed = tuples(2)
    for tup in (acked, failed):
        delivered(ledger, 1, tup)
    ledger.ack(acked)
    ledger.fail(acked, Fail("too late"))
    ledger.fail(failed, Fail("no"))
    ledger.ack(failed)
    ledger.ack(failed)
    assert [delivery.error is None for delivery in ledger.take_decided()] == [True, False]
    assert ledger.take_open() == []


def test_a_bolt_that_raises_has_failed_even_if_it_acked_first(ledger: AckLedger) -> None:
    (tup,) = tuples(1)
    delivery = delivered(ledger, 1, tup)
    ledger.ack(tup)
    ledger.overrule(delivery, ValueError("after the ack"))
    (decided,) = ledger.take_decided()
    assert isinstance(decided.error, ValueError)


def test_words_about_a_tuple_that_was_given_up_are_ignored(ledger: AckLedger) -> None:
    late, again = tuples(2)
    delivered(ledger, 1, late)
    assert len(ledger.take_open()) == 1
    delivered(ledger, 1, again)
    ledger.emit(late, "", "late")
    ledger.ack(late)
    ledger.fail(late, Fail("late"))
    assert ledger.take_decided() == []
    (waiting,) = ledger.take_open()
    assert (waiting.tup is again, waiting.emitted) == (True, [])


def test_what_is_emitted_belongs_to_its_tuple(ledger: AckLedger) -> None:
    first, second = tuples(2)
    delivered(ledger, 1, first)
    delivered(ledger, 2, second)
    ledger.emit(second, "a", 2)
    ledger.emit(first, "b", 1)
    ledger.ack(second)
    ledger.ack(first)
    assert [delivery.emitted for delivery in ledger.take_decided()] == [[("b", 1)], [("a", 2)]]


def test_to_emit_for_a_tuple_after_its_ack_fails_it(ledger: AckLedger) -> None:
    """What was emitted for it may be gone already, so this would be lost without a word."""
    (tup,) = tuples(1)
    delivered(ledger, 1, tup)
    ledger.ack(tup)
    with pytest.raises(ValueError, match="emit first"):
        ledger.emit(tup, "", 1)
    (decided,) = ledger.take_decided()
    assert "after its ack" in str(decided.error)


def test_waiting_ends_with_the_last_ack_from_another_thread() -> None:
    ledger = AckLedger("own", 0, 60.0)
    given = tuples(100)
    for tup in given:
        delivered(ledger, 1, tup)
    threads = [threading.Thread(target=lambda part=part: [ledger.ack(tup) for tup in given[part::4]])  # type: ignore[misc]
               for part in range(4)]
    for thread in threads:
        thread.start()
    ledger.wait()
    assert len(ledger.take_decided()) == 100
    for thread in threads:
        thread.join()


def test_waiting_ends_when_the_time_of_the_last_tuple_is_over(ledger: AckLedger, clock: Clock) -> None:
    first, last = tuples(2)
    delivered(ledger, 1, first)
    clock.now += 29
    delivered(ledger, 2, last)
    clock.now += 30
    ledger.wait()
    assert numbers(ledger.take_open()) == [1, 2]


def test_there_is_nothing_to_wait_for_when_all_are_decided(ledger: AckLedger) -> None:
    ledger.wait()
    (tup,) = tuples(1)
    delivered(ledger, 1, tup)
    ledger.fail(tup, Fail("no"))
    ledger.wait()
