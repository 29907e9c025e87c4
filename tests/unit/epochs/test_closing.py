"""Where windows are closed, their sources' end is told in one epoch, and the last epoch comes after it."""

from __future__ import annotations

from penstock.epochs.cutter import cut_next_epoch
from penstock.epochs.postponed import Late, Origin, Postponed, Span
from penstock.epochs.record import EpochRecord
from penstock.epochs.sequence import Anchor

from .counted_rows import Rows

START = {"a": {"row": 0}, "b": {"row": 0}}


def test_the_last_epoch_is_an_empty_one_after_all_sources_have_ended() -> None:
    sources = {"a": Rows(3), "b": Rows(2)}
    first = cut_next_epoch(1, START, sources, 10, 99, ended_before=())
    assert first is not None
    assert (first.tuples, first.ended, first.last) == ({"a": 3, "b": 2}, ("a", "b"), False)
    last = cut_next_epoch(2, first.ends, sources, 10, 100, ended_before=first.ended)
    assert last == EpochRecord(2, 100, first.ends, {"a": 0, "b": 0}, last=True, ended=("a", "b"))


def test_sources_that_end_at_different_times_are_told_one_by_one() -> None:
    sources = {"a": Rows(3), "b": Rows(12)}
    first = cut_next_epoch(1, START, sources, 10, 99, ended_before=())
    assert first is not None
    assert first.ended == ("a",)
    second = cut_next_epoch(2, first.ends, sources, 10, 99, ended_before=first.ended)
    assert second is not None
    assert (second.tuples, second.ended, second.last) == ({"a": 0, "b": 2}, ("a", "b"), False)


def test_an_end_that_comes_without_tuples_is_told_in_an_epoch_of_its_own() -> None:
    sources = {"a": Rows(3), "b": Rows(0, grows=True)}
    ends = {"a": {"row": 3}, "b": {"row": 0}}
    told = cut_next_epoch(2, ends, sources, 10, 99, ended_before=())
    assert told is not None
    assert (told.ended, told.last) == (("a",), False)
    assert cut_next_epoch(3, ends, sources, 10, 99, ended_before=("a",)) is None


def test_what_still_has_to_be_replayed_comes_before_the_end() -> None:
    sources = {"a": Rows(3)}
    late = Late(Anchor(1, 0, 1), Origin(1, 1), 1)
    postponed = [Postponed(1, (late,), {(0, 1): Span({"row": 0}, {"row": 3}, 1)})]
    first = cut_next_epoch(1, {"a": {"row": 0}}, sources, 10, 99, postponed=[], ended_before=())
    assert first is not None
    assert (first.ended, first.last) == ((), False)
    replaying = cut_next_epoch(2, first.ends, sources, 10, 99, postponed=postponed, ended_before=())
    assert replaying is not None
    assert (replaying.replays, replaying.ended) == ({"a": 1}, ())
    quiet = cut_next_epoch(3, first.ends, sources, 10, 99, postponed=postponed, ended_before=())
    assert quiet is not None
    assert (quiet.ended, quiet.last) == (("a",), False)
    last = cut_next_epoch(4, first.ends, sources, 10, 99, postponed=postponed, ended_before=quiet.ended)
    assert last is not None
    assert last.last


def test_the_end_of_sources_survives_the_log() -> None:
    record = EpochRecord(1, 0, {}, {}, ended=("a", "b"))
    assert EpochRecord.from_json(record.to_json()) == record
