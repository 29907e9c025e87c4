"""Carry the time of the epoch past custom code, which knows nothing of that column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.arrow_stage import Stage
from penstock.spark.numbering import TIME, TIMESTAMP


@dataclass(frozen=True)
class CarriedTime:
    """A stage around another one: what comes out has the time of what went in."""

    stage: Stage

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen: list[pa.Scalar] = [pa.scalar(None, TIMESTAMP)]

        def without_time() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                latest = pc.max(batch.column(TIME))
                if latest.is_valid:
                    seen[0] = latest
                yield batch.drop_columns([TIME])

        for batch in self.stage(without_time()):
            times = pa.repeat(seen[0], batch.num_rows)
            yield pa.RecordBatch.from_arrays([*batch.columns, times], names=[*batch.schema.names, TIME])
