from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from penstock.spark.carried_time import CarriedTime
from penstock.spark.numbering import TIME, TIMESTAMP, timed


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        assert batch.schema.names == ["n"]
        yield pa.RecordBatch.from_pydict({"m": [value for value in batch.column("n").to_pylist() for _ in range(2)]})


def test_what_comes_out_of_custom_code_has_the_time_of_what_went_in() -> None:
    rows = pa.RecordBatch.from_pydict({"n": [1, 2]})
    (out,) = CarriedTime(doubled)(iter([timed(rows, 5000)]))
    assert out.column("m").to_pylist() == [1, 1, 2, 2]
    assert out.schema.field(TIME).type == TIMESTAMP
    assert out.column(TIME).cast(pa.int64()).to_pylist() == [5_000_000] * 4


def test_tuples_that_have_no_time_take_none_from_the_others() -> None:
    rows = pa.RecordBatch.from_pydict({"n": [1, 2]})
    none = rows.append_column(TIME, pa.nulls(2, TIMESTAMP))
    first, second = CarriedTime(doubled)(iter([none, timed(rows, 5000)]))
    assert first.column(TIME).null_count == 4
    assert second.column(TIME).null_count == 0
