"""Tuples that come when the last of their windows is closed: taken out before the window, and counted or buried.

Spark would drop them by itself, and counts them only after they have been put together. Here they are told by the same
rule before that: a tuple carries the watermark by which Spark will judge it, see `late_watermark`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.spark.arrow_stage import is_narrow, map_batches
from penstock.spark.failures import FailureLedger
from penstock.spark.numbering import HIDDEN, MARK, SEQUENCE
from penstock.spark.present_epoch import present_epoch
from penstock.spark.tuples import rows_of
from penstock.spark.worker_process import task_number
from penstock.topology.window import Span, Window, WindowKind

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering

LATE_COUNT = "late"
"""What the number of late tuples is called among the observed metrics: `<operator>|late`."""
_END = "__end"
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def without_late(operator: Window, frame: DataFrame, event: Column, lowering: Lowering) -> DataFrame:
    """The tuples that are in time; the others are counted, or go to the dead letters. `event` is a tuple's time."""
    end = _end_of_last_window(operator.span, F.unix_micros(event))
    late = F.coalesce(end <= F.col(MARK) * 1000, F.lit(False))
    if operator.late == "dead-letter":
        columns = tuple(name for name in frame.columns if name not in HIDDEN)
        stage = LateStage(operator.name, operator.on or "", lowering.settings.state, columns)
        schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema)
        lowering.narrow &= is_narrow(frame.schema)
        return map_batches(frame.withColumn(_END, F.when(late, end)), stage, schema)
    if lowering.metrics:
        frame = frame.observe(f"{operator.name}|{LATE_COUNT}", F.count_if(late).alias("tuples"))
    return frame.where(~late)


def _end_of_last_window(span: Span, time: Column) -> Column:
    """The end of the last window that a time is in; all in microseconds since 1970."""
    if span.kind is WindowKind.SESSION:
        return time + span.length * 1000
    return time - F.pmod(time, F.lit(span.step * 1000)) + span.length * 1000


@dataclass(frozen=True)
class LateStage:
    """Runs in every task: buries the tuples that have an end of their last window, and lets the others through."""

    operator: str
    on: str
    state: str
    """The run's state folder, where tuples to be buried are noted."""
    columns: tuple[str, ...]
    """The columns of a tuple that the user knows."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = Path(self.state)
        ledger = FailureLedger(state, self.operator, True, lambda: present_epoch(state).epoch)
        for batch in batches:
            late = pc.is_valid(batch.column(_END))
            if pc.any(late).as_py():
                for sequence, tup, why in self.told(batch.filter(late)):
                    ledger.note(sequence, tup, why, "")
                batch = batch.filter(pc.invert(late))
            yield batch.drop_columns([_END])
        ledger.close(task_number())

    def told(self, batch: pa.RecordBatch) -> Iterator[tuple[int, dict[str, Any], str]]:
        """Of late tuples, their sequence, the tuple by column, and why it is late."""
        hidden = (batch.column(name).to_pylist() for name in (SEQUENCE, _END, MARK))
        for values, sequence, end, mark in zip(rows_of(batch, self.columns), *hidden, strict=True):
            tup = dict(zip(self.columns, values, strict=True))
            yield sequence, tup, self._why(tup, end, mark)

    def _why(self, tup: dict[str, Any], end: int, mark: int) -> str:
        named = {name.lower(): value for name, value in tup.items()}
        if named[self.on.lower()] is None:
            return f"too late: it has no time in '{self.on}'"
        reached = f"the watermark has reached {_moment(mark * 1000)}"
        return f"too late: its last window ended at {_moment(end)}, and {reached}"


def _moment(micros: int) -> str:
    return (_BEGINNING + timedelta(microseconds=micros)).isoformat()
