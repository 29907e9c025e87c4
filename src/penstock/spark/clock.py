"""A stream of ours beside each window: it tells Spark's watermark how far time has come when no tuple does.

It gives one row, with nothing but a time, in the epochs where there is something to tell: for a window over the time
of epochs, that time; and far in the future once every source of the window has ended, so that all of it is closed. The
latter again in every later epoch, for Spark forgets it over a restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition

from penstock.connectors.base import Slice
from penstock.spark.epoch_source import FORMAT, EpochPartition, EpochReader
from penstock.spark.numbering import TIMESTAMP
from penstock.spark.read_settings import ReadSettings

_END_OF_TIME_MS = 253_370_764_800_000
"""The year 9999."""
_COLUMN = "time"


@dataclass(frozen=True)
class ClockSettings:
    """Which window a clock serves."""

    sources: tuple[str, ...]
    """The sources from which the window's tuples come."""
    by_epoch_time: bool

    def to_json(self) -> str:
        return json.dumps(self.__dict__)

    @classmethod
    def from_json(cls, text: str) -> ClockSettings:
        fields = json.loads(text)
        return cls(tuple(fields["sources"]), fields["by_epoch_time"])


def clock_stream(spark: SparkSession, settings: ReadSettings, clock: ClockSettings) -> DataFrame:
    """The stream of a clock's rows; its one column is a timestamp."""
    reader = spark.readStream.format(FORMAT).schema(f"{_COLUMN} timestamp")
    return reader.option("settings", settings.to_json()).option("clock", clock.to_json()).load()


class ClockReader(EpochReader):
    """Goes from epoch to epoch like the reader of a source."""

    def __init__(self, settings: ReadSettings, clock: ClockSettings) -> None:
        # It cuts epochs as the reader of any source does.
        super().__init__(settings, settings.sources[0].name)
        self._clock = clock

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        told = self._told(end)
        self._read_ahead = None if told is None else [_row(told)]
        return [] if told is None else [EpochPartition(end["epoch"], told, Slice(0, {}))]

    def _told(self, end: dict[str, Any]) -> int | None:
        """The time to tell in an epoch, in milliseconds."""
        if set(self._clock.sources) <= set(json.loads(end.get("ended", "[]"))):
            return _END_OF_TIME_MS
        return int(end["time_ms"]) if self._clock.by_epoch_time else None

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, EpochPartition)
        yield _row(partition.time_ms)

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_clock": self._clock, "_rounds": self._rounds, "_read_ahead": None}


def _row(time_ms: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([time_ms * 1000], pa.int64()).cast(TIMESTAMP)], names=[_COLUMN])
