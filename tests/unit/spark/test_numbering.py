from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.connectors.base import Chunk, Cut, Slice, SourceConnector
from penstock.epochs.postponed import Late, Origin, Replay, Span
from penstock.epochs.sequence import Anchor
from penstock.spark.numbering import SEQUENCE, numbered, picked, slices_to_replay, without


def chunk(*numbers: int) -> Chunk:
    return Chunk(pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())}))


def sequences(rows: pa.RecordBatch) -> list[int]:
    found: list[int] = rows.column(SEQUENCE).to_pylist()
    return found


def test_tuples_are_numbered_in_order() -> None:
    assert sequences(numbered(chunk(5, 6, 7), 100)) == [100, 101, 102]


def test_replayed_tuples_are_picked_by_their_position_and_numbered_anew() -> None:
    rows = picked(chunk(5, 6, 7, 8), 10, {9: 1, 12: 77, 11: 66, 14: 2})
    assert rows.column("n").to_pylist() == [6, 7]
    assert sequences(rows) == [66, 77]
    assert picked(chunk(5), 0, {}).num_rows == 0


def test_postponed_tuples_are_left_out() -> None:
    rows = numbered(chunk(5, 6, 7), 100)
    assert without(rows, pa.array([4, 101])).column("n").to_pylist() == [5, 7]
    assert without(rows, pa.array([], pa.int64())) is rows


class Halves(SourceConnector):
    """Rows in two slices."""

    @classmethod
    def configure(cls, *_: Any) -> SourceConnector:
        return cls()

    def schema(self) -> Any: ...

    def start(self) -> dict[str, Any]:
        return {"row": 0}

    def cut(self, start: dict[str, Any], limit: int) -> Cut: ...

    def slices(self, start: dict[str, Any], end: dict[str, Any], parallelism: int) -> list[Slice]:
        step = (end["row"] - start["row"]) // parallelism
        return [Slice(first, {"row": start["row"] + first}) for first in range(0, step * parallelism, step)]

    def read(self, part: Slice) -> Iterator[Chunk]: ...


def replay(epoch: int, position: int, number: int) -> Replay:
    span = Span({"row": 100 * epoch}, {"row": 100 * epoch + 10}, 2)
    late = Late(Anchor(epoch, 0, position), Origin(epoch, position), 1)
    return Replay(late, Anchor(9, 0, number, replayed=True), span)


def test_only_the_slices_where_they_stand_are_read_again() -> None:
    found = slices_to_replay(Halves(), [replay(1, 2, 0), replay(1, 4, 1), replay(2, 5, 2)])
    name = [Anchor(9, 0, number, replayed=True).sequence for number in range(3)]
    assert found == [
        (Slice(0, {"row": 100}), {2: name[0], 4: name[1]}),
        (Slice(5, {"row": 205}), {5: name[2]}),
    ]
