"""What an epoch does without, when that is replayed, and when the last epoch may come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.coordination.base import MAX_VALUE_BYTES
from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.cutter import cut_next_epoch
from penstock.epochs.log import EpochLog
from penstock.epochs.postponed import Late, Origin, Postponed, Span, back_off, replays_in
from penstock.epochs.record import EpochRecord
from penstock.epochs.sequence import Anchor

from .counted_rows import Rows

SPAN = Span({"row": 0}, {"row": 10}, 2)


def late(epoch: int, position: int, source: int = 0, attempts: int = 1) -> Late:
    return Late(Anchor(epoch, source, position), Origin(epoch, position), attempts)


def postponed(epoch: int, *tuples: Late) -> Postponed:
    return Postponed(epoch, tuples, {(item.anchor.source, item.origin.epoch): SPAN for item in tuples})


def test_the_wait_doubles_up_to_a_limit() -> None:
    assert [back_off(attempts) for attempts in (1, 2, 3, 4, 7, 8, 100)] == [1, 2, 4, 8, 64, 64, 64]


lates = st.builds(
    lambda source, position, replayed, epoch, at, attempts: Late(
        Anchor(7, source, position, replayed), Origin(epoch, at), attempts
    ),
    st.integers(0, 3), st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 7), st.integers(0, 2**32 - 1),
    st.integers(1, 100),
)  # fmt: skip


@given(st.lists(lates, max_size=20))
def test_it_reads_back_from_the_coordinator_as_it_was(tuples: list[Late]) -> None:
    whole = Postponed(7, tuple(tuples), {(item.anchor.source, item.origin.epoch): SPAN for item in tuples})
    assert Postponed.from_json(whole.to_json()) == whole


@pytest.mark.parametrize("step", [1, 2, 37])
def test_a_large_epoch_that_fails_as_a_whole_still_fits_the_coordinator(step: int) -> None:
    """A tenth of a million tuples takes a twentieth of an entry, so a million takes half of one."""
    tenth = postponed(5, *(late(5, position) for position in range(0, 100_000, step)))
    assert len(tenth.to_json()) < MAX_VALUE_BYTES / 20


def test_tuples_are_replayed_in_the_epoch_that_they_are_due_in() -> None:
    log = [postponed(4, late(4, 9, attempts=2)), postponed(5, late(5, 3), late(5, 8, source=1))]
    due = replays_in(6, log)
    assert [(item.late.origin, item.anchor) for item in due] == [
        (Origin(4, 9), Anchor(6, 0, 0, replayed=True)),
        (Origin(5, 3), Anchor(6, 0, 1, replayed=True)),
        (Origin(5, 8), Anchor(6, 1, 0, replayed=True)),
    ]
    assert replays_in(7, log) == []


# -- the cutter ---------------------------------------------------------------------------------


def cut(epoch: int, row: int, log: list[Postponed] | None, grows: bool = False) -> EpochRecord | None:
    return cut_next_epoch(epoch, {"a": {"row": row}}, {"a": Rows(10, grows)}, 100, 99, postponed=log)


def test_an_epoch_with_tuples_that_may_fail_is_not_the_last() -> None:
    with_input = cut(1, 0, [])
    assert with_input is not None
    assert not with_input.last
    empty = cut(2, 10, [])
    assert empty is not None
    assert empty.last
    without_retries = cut(1, 0, None)
    assert without_retries is not None
    assert without_retries.last


@pytest.mark.parametrize("grows", [True, False])
def test_epochs_are_cut_until_everything_is_replayed(grows: bool) -> None:
    log = [postponed(1, late(1, 4, attempts=2))]
    waiting, replaying = cut(2, 10, log, grows), cut(3, 10, log, grows)
    assert waiting is not None and replaying is not None
    assert (waiting.replays, waiting.last) == ({}, False)
    assert (replaying.replays, replaying.last) == ({"a": 1}, False)
    after = cut(4, 10, log, grows)
    assert (after is None) if grows else (after is not None and after.last)


# -- the log ------------------------------------------------------------------------------------


def test_the_first_to_settle_an_epoch_settles_it_for_all() -> None:
    log = EpochLog(MemoryCoordinator())
    assert log.postponed(3) is None
    first, second = postponed(3, late(3, 1)), postponed(3, late(3, 2))
    assert log.postpone(first) == first
    assert log.postpone(second) == first
    assert log.postponed(3) == first
    assert log.all_postponed() == [first]


def test_what_may_still_be_replayed_is_kept_longer_than_the_records() -> None:
    log = EpochLog(MemoryCoordinator())
    for epoch in range(1, 301):
        log.propose(EpochRecord(epoch, 0, {}, {}))
        log.postpone(Postponed(epoch))
    log.note_progress("0", 300)
    log.forget_unneeded(100)
    assert min(log.agreed()) == 201
    assert min(item.epoch for item in log.all_postponed()) == 137


def test_a_fresh_start_forgets_what_was_owed() -> None:
    log = EpochLog(MemoryCoordinator())
    log.postpone(postponed(3, late(3, 1)))
    log.clear()
    assert log.all_postponed() == []
