"""One Python streaming data source through which Spark reads every connector, epoch by epoch.

Spark asks `latestOffset` for more; the answer is the next agreed epoch, or the same offset again while
there is none. The offset carries the epoch's number, its time, and where each source ends, so Spark's
own offset log is enough to replay it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from penstock.connectors.base import Chunk, Place, Slice, SourceConnector
from penstock.connectors.registry import source_connector
from penstock.coordination.sqlite import SqliteCoordinator
from penstock.epochs.cutter import cut_next_epoch
from penstock.epochs.log import EpochLog
from penstock.epochs.record import SEQUENCE_BITS, EpochRecord
from penstock.errors import PenstockError
from penstock.spark.faults import WorkerFault
from penstock.spark.malformed import MalformedLedger
from penstock.spark.worker_process import settle_in
from penstock.topology.model import FrozenOptions, Source
from penstock.topology.schema import parse_schema

SEQUENCE = "__seq"
"""The hidden column that orders tuples; see `epochs.record.SEQUENCE_BITS`."""

STOP_KEY = "stop/"
"""While this entry of a run exists, no further epoch is cut: the run is draining."""

FORMAT = "penstock"


@dataclass(frozen=True)
class ReadSettings:
    """What a reader process must know; travels to it as one JSON option."""

    topology: str
    folder: str
    state: str
    """The run's state folder: the coordinator's file and the ledger of malformed records."""
    run: str
    """A fresh id for every start."""
    sources: tuple[Source, ...]
    max_tuples: int
    parallelism: int
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    """By source, the columns to read; a source that is not named is read whole."""

    def to_json(self) -> str:
        sources = [
            {
                "name": source.name,
                "kind": source.kind,
                "options": source.options,
                "schema": None if source.schema is None else source.schema.ddl,
                "on_malformed": source.on_malformed,
            }
            for source in self.sources
        ]
        return json.dumps({**self.__dict__, "sources": sources})

    @classmethod
    def from_json(cls, text: str) -> ReadSettings:
        fields = json.loads(text)
        sources = tuple(
            Source(
                source["name"],
                source["kind"],
                FrozenOptions(source["options"]),
                None if source["schema"] is None else parse_schema(source["schema"]),
                source["on_malformed"],
            )
            for source in fields.pop("sources")
        )
        return cls(sources=sources, **fields)

    def connector(self, source: Source) -> SourceConnector:
        connector = source_connector(source, Place(self.topology, source.name, Path(self.folder)))
        chosen = self.columns.get(source.name)
        return connector if chosen is None else connector.only(chosen)


class EpochDataSource(DataSource):
    """`spark.readStream.format("penstock")` with the options `settings` and `source`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return EpochReader(ReadSettings.from_json(self.options["settings"]), self.options["source"])


class EpochPartition(InputPartition):
    """One slice of one epoch of one source."""

    def __init__(self, epoch: int, part: Slice) -> None:
        self.epoch = epoch
        self.part = part


class EpochReader(DataSourceStreamReader):
    """Reads one source of a topology; several readers of a run agree through the epoch log."""

    def __init__(self, settings: ReadSettings, source: str) -> None:
        self._settings = settings
        self._source = next(item for item in settings.sources if item.name == source)
        self._round = (0, 0)

    # -- on the driver --------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        ends = {name: connector.start() for name, connector in self._connectors.items()}
        return _offset(EpochRecord(0, 0, ends, {}))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        try:
            record = None if start["last"] else self._next_epoch(start)
        except PenstockError as error:
            raise WorkerFault("connector", str(error)) from error
        return start if record is None else _offset(record)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        name = self._source.name
        begin, finish = json.loads(start["ends"])[name], json.loads(end["ends"])[name]
        if begin == finish:
            return []
        try:
            parts = self._connectors[name].slices(begin, finish, self._settings.parallelism)
        except PenstockError as error:
            raise WorkerFault("connector", str(error)) from error
        return [EpochPartition(end["epoch"], part) for part in parts]

    def _next_epoch(self, start: Mapping[str, Any]) -> EpochRecord | None:
        epoch = start["epoch"] + 1
        agreed = self._log.get(epoch)
        if agreed is not None:
            return agreed
        if self._coordinator.get(STOP_KEY + self._settings.run) is not None or not self._may_cut(epoch):
            return None
        proposal = cut_next_epoch(
            epoch,
            json.loads(start["ends"]),
            self._connectors,
            self._settings.max_tuples,
            int(time.time() * 1000),
        )
        return None if proposal is None else self._log.propose(proposal)

    def _may_cut(self, epoch: int) -> bool:
        """Whether this reader is the one of its round that decides if the epoch is cut now.

        Spark asks every source once for each micro-batch. If one source answered 'nothing' and the
        next one cut an epoch a moment later, one micro-batch would mix two epochs: so the first to
        be asked decides for all.
        """
        if len(self._settings.sources) == 1:
            return True
        current, asked = self._round
        self._round = (epoch, asked + 1 if current == epoch else 0)
        key = f"round/{self._settings.run}/{epoch}/{self._round[1]}"
        decided_by = self._coordinator.create_if_absent(key, self._source.name)
        if self._round[1] > 0 and decided_by == self._source.name:
            self._coordinator.delete(f"round/{self._settings.run}/{epoch}/{self._round[1] - 1}")
        return decided_by == self._source.name

    @cached_property
    def _connectors(self) -> dict[str, SourceConnector]:
        return {source.name: self._settings.connector(source) for source in self._settings.sources}

    @cached_property
    def _coordinator(self) -> SqliteCoordinator:
        return SqliteCoordinator(coordinator_file(Path(self._settings.state)))

    @cached_property
    def _log(self) -> EpochLog:
        return EpochLog(self._coordinator)

    # -- on the executors -----------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EpochPartition)
        settle_in()
        connector = self._settings.connector(self._source)
        ledger = MalformedLedger(Path(self._settings.state), self._source)
        base = partition.epoch << SEQUENCE_BITS
        position = partition.part.first
        try:
            for chunk in connector.read(partition.part):
                ledger.note(chunk.malformed)
                yield _with_sequence(chunk, base + position)
                position += chunk.rows.num_rows + len(chunk.malformed)
            ledger.close(partition.epoch, partition.part.first)
        except PenstockError as error:
            raise WorkerFault("connector", str(error)) from error

    def __getstate__(self) -> dict[str, Any]:
        # What is cached holds an open database: the executors make their own.
        return {"_settings": self._settings, "_source": self._source, "_round": self._round}


def coordinator_file(state: Path) -> Path:
    """Where the embedded coordinator keeps its entries."""
    return state / "coordinator.sqlite"


def offset_epoch(offset: str) -> tuple[int, EpochRecord]:
    """The epoch that an entry of Spark's offset log stands for."""
    fields = json.loads(offset)
    ends = json.loads(fields["ends"])
    record = EpochRecord(
        fields["epoch"], fields["time_ms"], ends, json.loads(fields["tuples"]), fields["backlog"], fields["last"]
    )
    return record.epoch, record


def _offset(record: EpochRecord) -> dict[str, Any]:
    # Nested objects as text: Spark reads numbers in nested objects back as it likes.
    return {
        "epoch": record.epoch,
        "time_ms": record.time_ms,
        "ends": json.dumps(record.ends),
        "tuples": json.dumps(record.tuples),
        "backlog": record.backlog,
        "last": record.last,
    }


def _with_sequence(chunk: Chunk, first: int) -> pa.RecordBatch:
    rows = chunk.rows
    sequence = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64))
    return pa.RecordBatch.from_arrays([*rows.columns, sequence], names=[*rows.schema.names, SEQUENCE])
