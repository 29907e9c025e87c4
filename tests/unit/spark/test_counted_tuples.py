"""Windows of so many tuples are exact for every key, however the tuples come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.keyed_harness import MemoryStates
from penstock.spark.counted_tuples import FIRST, PLACE, CountingStage, full_between, next_window, tuples_read
from penstock.spark.faults import WorkerFault
from penstock.spark.key_columns import KeyColumns


def stage(length: int, step: int) -> CountingStage:
    return CountingStage("operator 'w' (t.yaml:7)", length, step, KeyColumns(("key",), ("string",)), (), str(Path()))


def batches(rows: list[tuple[str | None, int]], at_once: int) -> list[pa.RecordBatch]:
    """As Spark hands over an epoch: sorted by key, and cut anywhere."""
    ordered = sorted(rows, key=lambda row: (row[0] is not None, row[0] or ""))
    whole = pa.RecordBatch.from_pydict({
        "key": pa.array([key for key, _ in ordered], pa.string()),
        "value": pa.array([value for _, value in ordered], pa.int64()),
    })
    return [whole.slice(begin, at_once) for begin in range(0, len(rows), at_once)]


def windows_in(emitted: Iterator[pa.RecordBatch]) -> dict[tuple[str | None, int], list[int]]:
    found: dict[tuple[str | None, int], list[int]] = {}
    for batch in emitted:
        for row in batch.to_pylist():
            values = found.setdefault((row["key"], row[FIRST]), [])
            assert row[PLACE] == len(values)
            values.append(row["value"])
    return found


def by_definition(
    rows: list[tuple[str | None, int]], length: int, step: int
) -> dict[tuple[str | None, int], list[int]]:
    expected = {}
    for key in {key for key, _ in rows}:
        values = [value for each, value in rows if each == key]
        for first in range(0, len(values) - length + 1, step):
            expected[key, first + 1] = values[first : first + length]
    return expected


keys = st.sampled_from(["a", "b", "c", None])


@given(st.lists(st.lists(keys, max_size=30), max_size=6), st.integers(1, 7), st.integers(1, 7), st.integers(1, 9))
def test_windows_are_the_same_however_tuples_are_cut_into_epochs_and_batches(
    epochs: list[list[str | None]], one: int, other: int, at_once: int
) -> None:
    length, step = max(one, other), min(one, other)
    numbers = iter(range(1000))
    rows = [[(key, next(numbers)) for key in epoch] for epoch in epochs]
    states = MemoryStates()
    found: dict[tuple[str | None, int], list[int]] = {}
    for epoch in rows:
        full = windows_in(stage(length, step).full_windows(iter(batches(epoch, at_once)), states))
        assert not full.keys() & found.keys()
        found |= full
    assert found == by_definition([row for epoch in rows for row in epoch], length, step)


def test_only_tuples_that_a_window_still_needs_are_remembered() -> None:
    states = MemoryStates()
    list(stage(100, 10).full_windows(iter(batches([("a", n) for n in range(1005)], 2000)), states))
    many = states.encoded["a",]
    assert tuples_read(many) == 1005
    list(stage(100, 10).full_windows(iter(batches([("b", n) for n in range(95)], 2000)), states))
    few = states.encoded["b",]
    assert abs(len(many) - len(few)) < 20


def test_a_window_that_is_full_leaves_nothing_but_the_number() -> None:
    states = MemoryStates()
    list(stage(5, 5).full_windows(iter(batches([("a", n) for n in range(10)], 3)), states))
    remembered = states.encoded["a",]
    assert len(remembered) < 20


def test_other_columns_than_before_are_refused_in_plain_words() -> None:
    states = MemoryStates()
    list(stage(5, 5).full_windows(iter(batches([("a", 1)], 3)), states))
    other = pa.RecordBatch.from_pydict({"key": ["a"], "value": ["text"]})
    with pytest.raises(WorkerFault, match="had other columns than those it reads now"):
        list(stage(5, 5).full_windows(iter([other]), states))


@pytest.mark.parametrize(("before", "now", "full"), [
    (0, 99, []), (0, 100, [0]), (99, 120, [0, 10, 20]), (120, 129, [])])
def test_a_window_is_full_once(before: int, now: int, full: list[int]) -> None:
    assert full_between(before, now, 100, 10).tolist() == full
    assert next_window(before, 100, 10) == (full[0] if full else next_window(now, 100, 10))
