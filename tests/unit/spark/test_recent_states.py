"""States that one epoch's tasks hand to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.keyed_harness import MemoryStates
from penstock.spark import recent_states
from penstock.spark.recent_states import Recent, RecentStates
from penstock.spark.state_access import Change, Wake
from penstock.spark.state_socket import Key


@dataclass
class Store(MemoryStates):
    asked: list[Key] = field(default_factory=list)
    expected: list[Key] = field(default_factory=list)

    def load(self, keys: Sequence[Key]) -> list[bytes | None]:
        assert list(keys) == self.expected or not self.expected
        self.expected.clear()
        self.asked += keys
        return super().load(keys)

    def expect(self, keys: Sequence[Key]) -> None:
        self.expected += keys

    def due(self, until_ms: int) -> Iterator[list[Wake]]:
        yield from super().due(until_ms)


class Tasks:
    """The tasks of one part of the keys, one after another."""

    def __init__(self, folder: Path) -> None:
        self.store = Store()
        self.folder = folder
        self.batch = 0

    def next(self, run: str = "run", part: int = 0) -> RecentStates:
        self.store.asked.clear()
        self.batch += 1
        return RecentStates(self.store, Recent(self.folder, run, part, self.batch))


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    return Tasks(tmp_path / "recent")


A, B, C = ("a",), ("b",), ("c",)


def test_what_the_task_before_knew_is_not_asked_for(tasks: Tasks) -> None:
    tasks.store.encoded |= {A: b"1", B: b"2", C: b"3"}
    first = tasks.next()
    assert first.load([A, B]) == [b"1", b"2"]
    first.save([Change(A, b"11"), Change(B, None)])
    first.leave()
    second = tasks.next()
    assert second.load([A, B, C]) == [b"11", None, b"3"]
    assert tasks.store.asked == [C]
    second.leave()
    third = tasks.next()
    assert third.load([C]) == [b"3"]
    assert tasks.store.asked == []


def test_a_change_is_known_at_once_and_written_to_the_store(tasks: Tasks) -> None:
    states = tasks.next()
    states.save([Change(A, b"1", enter=5)])
    assert states.load([A]) == [b"1"]
    assert list(states.due(5)) == [[(A, 5)]]
    assert tasks.store.encoded == {A: b"1"}
    assert tasks.store.asked == []


def test_of_the_next_keys_those_that_are_known_are_not_fetched(tasks: Tasks) -> None:
    tasks.store.encoded |= {A: b"1", B: b"2", C: b"3"}
    first = tasks.next()
    first.load([A])
    first.leave()
    second = tasks.next()
    second.expect([A, B, C])
    assert tasks.store.expected == [B, C]
    assert second.load([A, B, C]) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(("run", "part", "skipped"), [("other", 0, 0), ("run", 1, 0), ("run", 0, 1)])
def test_another_run_another_part_and_a_batch_later_find_nothing(
    tasks: Tasks, run: str, part: int, skipped: int
) -> None:
    states = tasks.next()
    states.save([Change(A, b"old")])
    states.leave()
    tasks.store.encoded[A] = b"new"
    tasks.batch += skipped
    assert tasks.next(run, part).load([A]) == [b"new"]


def test_an_epoch_without_tuples_hands_on_what_it_was_handed(tasks: Tasks) -> None:
    tasks.store.encoded[A] = b"1"
    first = tasks.next()
    first.load([A])
    first.leave()
    tasks.next().leave()
    assert tasks.next().load([A]) == [b"1"]
    assert tasks.store.asked == []


def test_older_files_are_removed(tasks: Tasks) -> None:
    for _ in range(5):
        states = tasks.next()
        states.load([A])
        states.leave()
    assert sorted(path.name for path in tasks.folder.iterdir()) == ["run-0-4", "run-0-5"]


def test_a_batch_that_is_computed_twice_hands_on_only_what_came_of_it_the_second_time(tasks: Tasks) -> None:
    first = tasks.next()
    first.save([Change(A, b"1")])
    first.leave()
    for changed in (Change(B, b"wrong"), None):
        states = tasks.next()
        assert states.load([A]) == [b"1"]
        states.save([] if changed is None else [changed])
        states.leave()
        tasks.batch -= 1
    tasks.batch += 1
    tasks.store.encoded.pop(B)
    assert tasks.next().load([A, B]) == [b"1", None]
    assert tasks.store.asked == [B]


def test_also_where_nothing_came_of_it_the_second_time(tasks: Tasks) -> None:
    first = tasks.next()
    first.save([Change(A, b"wrong")])
    first.leave()
    tasks.batch -= 1
    tasks.next().leave()
    tasks.store.encoded[A] = b"right"
    assert tasks.next().load([A]) == [b"right"]


def test_a_damaged_file_is_as_none(tasks: Tasks) -> None:
    tasks.store.encoded[A] = b"1"
    first = tasks.next()
    first.load([A])
    first.leave()
    file = tasks.folder / "run-0-1"
    file.write_bytes(file.read_bytes()[:-3])
    assert tasks.next().load([A]) == [b"1"]
    assert tasks.store.asked == [A]


def test_where_nothing_can_be_written_the_store_is_asked(tasks: Tasks) -> None:
    tasks.store.encoded[A] = b"1"
    tasks.folder.write_text("no folder")
    first = tasks.next()
    first.load([A])
    first.leave()
    assert tasks.next().load([A]) == [b"1"]
    assert tasks.store.asked == [A]


def test_of_too_much_only_a_part_is_handed_on_and_nothing_stale(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_states, "_MOST_BYTES", 250)
    first = tasks.next()
    first.save([Change(A, b"1"), Change(B, b"2"), Change(C, b"3")])
    assert first.load([C]) == [b"3"]
    first.leave()
    second = tasks.next()
    second.save([Change(A, b"1" * 200)])
    assert second.load([A, B, C]) == [b"1" * 200, b"2", b"3"]
    assert tasks.store.asked == [A, C]
