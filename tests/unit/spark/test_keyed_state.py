"""How often the states of keys are asked for and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from penstock.epochs.sequence import Anchor, is_of_timer
from penstock.keyed_harness import MemoryStates
from penstock.spark import keyed_state
from penstock.spark.key_columns import KeyColumns
from penstock.spark.keyed_state import KeyedSettings, KeyedTask
from penstock.spark.numbering import SEQUENCE
from penstock.spark.state_access import Change
from penstock.spark.state_socket import Key
from penstock.topology.bolt import Bolt
from penstock.topology.context import Context, PresentEpoch
from penstock.topology.model import Custom
from penstock.topology.schema import parse_schema
from penstock.topology.state_encoding import decode

OPERATOR = Custom("sums", (), code="sums", emits=(("", parse_schema("key string, total bigint")),), key=("key",))


@dataclass
class WatchedStates(MemoryStates):
    loaded: list[Key] = field(default_factory=list)
    expected: list[Key] = field(default_factory=list)
    saved: list[Change] = field(default_factory=list)
    trips: int = 0

    def load(self, keys: Sequence[Key]) -> list[bytes | None]:
        self.loaded += keys
        self.trips += 1
        return super().load(keys)

    def expect(self, keys: Sequence[Key]) -> None:
        assert not {change.key for change in self.saved} & set(keys)
        self.expected += keys

    def save(self, changes: Sequence[Change]) -> None:
        self.saved += changes
        self.trips += 1
        super().save(changes)


class Sums(Bolt):
    def process(self, tup: Any) -> None:
        total = self.context.state.value("total", 0)
        if tup.number:
            total.set(total.get() + tup.number)
        if tup.number == 99:
            self.context.timers.set(3600, "later")
        elif tup.number == 98:
            self.context.timers.set(60, "later")
        self.emit(tup.key, total.get())

    def on_timer(self, name: str) -> None:
        self.emit(self.context.key, -1)


def batch(*rows: tuple[str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _ in rows]),
            pa.array([number for _, number in rows], pa.int64()),
            pa.array([Anchor(1, 0, place).sequence for place in range(len(rows))], pa.int64()),
        ],
        names=["key", "number", SEQUENCE],
    )


def run(
    states: MemoryStates, *batches: pa.RecordBatch, time_ms: int = 1000, last: bool = False, code: Any = None
) -> list[dict[str, Any]]:
    context = Context("sums", 0, "t", lambda: PresentEpoch(1, time_ms, last))
    settings = KeyedSettings(OPERATOR, "", ("key", "number"), KeyColumns(("key",), ("string",)))
    task = KeyedTask(settings, code or Sums(), context, states, None)
    given = [part for each in batches for part in task.give(each)]
    return [row for part in [*given, *task.finish()] for row in part.to_pylist()]


def test_a_key_is_asked_for_once_and_written_once_however_many_tuples_and_batches_it_has() -> None:
    states = WatchedStates()
    rows = run(states, batch(("a", 1), ("b", 1), ("b", 2)), batch(("b", 3)), batch(("b", 4), ("c", 1)))
    assert states.loaded == [("a",), ("b",), ("c",)]
    assert sorted(change.key for change in states.saved) == [("a",), ("b",), ("c",)]
    assert [row["total"] for row in rows if row["key"] == "b"] == [1, 3, 6, 10]


def test_a_key_that_was_only_read_is_not_written() -> None:
    states = WatchedStates()
    run(states, batch(("a", 5)))
    states.saved.clear()
    run(states, batch(("a", 0), ("b", 0)))
    assert states.saved == []


def test_many_keys_are_one_round_trip_each_way() -> None:
    states = WatchedStates()
    rows = [(f"{number:04}", 1) for number in range(keyed_state.KEYS_AT_ONCE)]
    run(states, batch(*rows))
    # The last key is written on its own: its tuples might have gone on.
    assert states.trips == 3


def test_the_next_keys_are_fetched_while_these_are_processed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_state, "KEYS_AT_ONCE", 2)
    states = WatchedStates()
    run(states, batch(*[(key, 1) for key in "aabbcde"]), batch(("e", 1), ("f", 1), ("g", 1)))
    # Not the first of a batch: its tuples may go on from the batch before.
    assert states.expected == [("c",), ("d",), ("e",), ("g",)]
    assert states.loaded == [(key,) for key in "abcdefg"]
    totals = {key: decode(encoded).items["total"].content for (key,), encoded in states.encoded.items()}
    assert totals == {"a": 2, "b": 2, "c": 1, "d": 1, "e": 2, "f": 1, "g": 1}


def test_a_key_is_not_entered_again_for_a_later_moment_but_for_a_sooner_one() -> None:
    states = WatchedStates()
    run(states, batch(("a", 99)))
    run(states, batch(("a", 99)), time_ms=2000)
    assert [(change.enter, change.strike) for change in states.saved] == [(3_601_000, None), (None, None)]
    run(states, batch(("a", 98)), time_ms=3000)
    assert (states.saved[-1].enter, states.saved[-1].strike) == (63_000, 3_601_000)
    assert states.entered == {(63_000, ("a",))}


def test_a_key_woken_too_early_is_entered_for_the_right_moment() -> None:
    states = WatchedStates()
    run(states, batch(("a", 99)), time_ms=1000)
    run(states, batch(("a", 99)), time_ms=2000)
    assert run(states, time_ms=3_601_500) == []
    assert states.entered == {(3_602_000, ("a",))}
    assert [row["total"] for row in run(states, time_ms=3_602_000)] == [-1]
    assert states.entered == set()


def test_what_timers_emit_comes_after_everything_else_of_the_epoch() -> None:
    states = WatchedStates()
    rows = run(states, batch(("a", 98), ("b", 1)), last=True)
    assert [is_of_timer(row[SEQUENCE]) for row in rows] == [False, False, True]
    assert rows == sorted(rows, key=lambda row: row[SEQUENCE])


def test_a_function_is_given_the_columns_that_its_parameters_are_named_after() -> None:
    def added(number: int, key: str, context: Context) -> tuple[str, int]:
        total = context.state.value("total", 0)
        total.set(total.get() + number)
        return key, total.get()

    rows = run(MemoryStates(), batch(("a", 5), ("a", 2), ("b", 1)), code=added)
    assert [(row["key"], row["total"]) for row in rows] == [("a", 5), ("a", 7), ("b", 1)]
