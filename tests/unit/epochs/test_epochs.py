from __future__ import annotations

import pytest

from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.cutter import cut_next_epoch
from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord
from penstock.errors import EpochForgotten

from .counted_rows import Rows

START = {"a": {"row": 0}, "b": {"row": 0}}


def test_an_epoch_takes_no_more_than_the_limit_from_each_source() -> None:
    record = cut_next_epoch(1, START, {"a": Rows(10), "b": Rows(2)}, 4, 99)
    assert record is not None
    assert record.ends == {"a": {"row": 4}, "b": {"row": 2}}
    assert record.tuples == {"a": 4, "b": 2}
    assert record.backlog == 6
    assert (record.time_ms, record.last) == (99, False)


def test_nothing_is_cut_while_nothing_is_there() -> None:
    assert cut_next_epoch(1, START, {"a": Rows(0, grows=True), "b": Rows(0)}, 4, 0) is None


@pytest.mark.parametrize("epoch", [1, 5])
def test_the_end_of_all_sources_is_an_epoch_of_its_own_when_it_is_noticed_late(epoch: int) -> None:
    record = cut_next_epoch(epoch, START, {"a": Rows(0), "b": Rows(0)}, 4, 0)
    assert record is not None
    assert record.last


def test_an_end_that_is_held_is_not_told_and_what_is_there_is_processed() -> None:
    sources = {"a": Rows(3), "b": Rows(2)}
    first = cut_next_epoch(1, START, sources, 4, 0, end_is_held=True)
    assert first is not None
    assert (first.tuples, first.last) == ({"a": 3, "b": 2}, False)
    assert cut_next_epoch(2, first.ends, sources, 4, 0, end_is_held=True) is None
    released = cut_next_epoch(2, first.ends, sources, 4, 0)
    assert released is not None
    assert released.last


def test_windows_are_not_closed_by_an_end_that_is_held() -> None:
    sources = {"a": Rows(3), "b": Rows(2)}
    first = cut_next_epoch(1, START, sources, 4, 0, ended_before=(), end_is_held=True)
    assert first is not None
    assert first.ended == ()


def test_the_first_proposal_of_an_epoch_is_the_agreed_one() -> None:
    log = EpochLog(MemoryCoordinator())
    first = EpochRecord(1, 5, {"a": {"row": 1}}, {"a": 1})
    assert log.propose(first) == first
    assert log.propose(EpochRecord(1, 9, {"a": {"row": 7}}, {"a": 7})) == first
    assert log.get(1) == first
    assert log.get(2) is None


@pytest.mark.parametrize(("slowest", "kept", "left"), [(10, 2, range(9, 12)), (2, 0, range(3, 12))])
def test_old_records_are_forgotten_but_for_what_the_slowest_replica_needs(slowest: int, kept: int, left: range) -> None:
    log = EpochLog(MemoryCoordinator())
    for epoch in range(1, 12):
        log.propose(EpochRecord(epoch, 0, {}, {}))
    log.note_progress("0", 11)
    log.note_progress("1", slowest)
    log.note_progress("gone", 1)
    log.only_replicas(["0", "1"])
    log.forget_unneeded(kept=kept)
    assert log.agreed() == list(left)


def log_of(epochs: int, forgotten: int) -> EpochLog:
    log = EpochLog(MemoryCoordinator())
    for epoch in range(1, epochs + 1):
        log.propose(EpochRecord(epoch, 0, {}, {}))
    log.note_progress("1", forgotten)
    log.forget_unneeded(kept=0)
    return log


def test_an_epoch_that_is_forgotten_is_not_agreed_a_second_time() -> None:
    log = log_of(epochs=9, forgotten=6)
    with pytest.raises(EpochForgotten, match="epoch 4 was agreed long ago, and all records up to epoch 6 are gone"):
        log.propose(EpochRecord(4, 99, {}, {}))
    assert log.agreed() == [7, 8, 9]
    assert log.propose(EpochRecord(7, 99, {}, {})) == EpochRecord(7, 0, {}, {})
    assert log.propose(EpochRecord(10, 99, {}, {})) == EpochRecord(10, 99, {}, {})


def test_who_wakes_up_long_after_an_epoch_does_not_deliver_it_again() -> None:
    coordinator = MemoryCoordinator()
    log = EpochLog(coordinator)
    assert log.begins(1, "awake")
    for epoch in range(1, 6):
        log.propose(EpochRecord(epoch, 0, {}, {}))
    log.note_progress("0", 5)
    log.forget_unneeded(kept=3)
    assert not log.begins(1, "frozen until now")
    assert not log.begins(2, "frozen until now")
    # Nothing is left of the question, which nobody would remove any more.
    assert coordinator.list("begun/") == []
    assert log.begins(3, "frozen until now")


def test_who_knows_less_does_not_take_back_what_is_forgotten() -> None:
    log = log_of(epochs=9, forgotten=6)
    log._note_forgotten(3)
    assert log.forgotten() == 6
    log._note_forgotten(8)
    assert log.forgotten() == 8


def test_after_a_new_beginning_nothing_is_forgotten() -> None:
    log = log_of(epochs=9, forgotten=6)
    log.clear()
    assert log.propose(EpochRecord(1, 99, {}, {})) == EpochRecord(1, 99, {}, {})


def test_an_idle_source_gives_an_epoch_only_when_a_tick_is_due() -> None:
    idle = {"a": Rows(3, grows=True)}
    assert cut_next_epoch(4, {"a": {"row": 3}}, idle, 10, 1000) is None
    ticked = cut_next_epoch(4, {"a": {"row": 3}}, idle, 10, 1000, tick=True)
    assert ticked == EpochRecord(4, 1000, {"a": {"row": 3}}, {"a": 0})


def test_what_is_shed_survives_the_log() -> None:
    log = EpochLog(MemoryCoordinator())
    record = EpochRecord(1, 0, {}, {}, shed={"a": 0.25}, seed=7)
    log.propose(record)
    assert log.get(1) == record
