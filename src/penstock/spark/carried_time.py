"""Carry the time of the epoch, and its watermark, past custom code, which knows nothing of these columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.arrow_stage import Stage
from penstock.spark.numbering import MARK, TIME, TIMESTAMP

_TYPES = {TIME: TIMESTAMP, MARK: pa.int64()}


@dataclass(frozen=True)
class CarriedTime:
    """A stage around another one: what comes out has the time of what went in."""

    stage: Stage
    columns: tuple[str, ...] = (TIME,)
    """What is carried."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen: dict[str, pa.Scalar] = {name: pa.scalar(None, _TYPES[name]) for name in self.columns}

        def without_time() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for name in self.columns:
                    latest = pc.max(batch.column(name))
                    if latest.is_valid:
                        seen[name] = latest
                yield batch.drop_columns(list(self.columns))

        for batch in self.stage(without_time()):
            carried = (pa.repeat(seen[name], batch.num_rows) for name in self.columns)
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *carried], names=[*batch.schema.names, *self.columns]
            )
