"""One Python streaming data source through which Spark reads every connector, epoch by epoch.

Spark asks `latestOffset` for more; the answer is the next agreed epoch, or the same offset again while
there is none. The offset carries the epoch's number, its time, and where each source ends, so Spark's
own offset log is enough to replay it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from penstock.connectors.base import Slice, SourceConnector
from penstock.connectors.lookup_tables import enrichment_from_json, lookup_table
from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.ahead import is_due
from penstock.epochs.cutter import cut_next_epoch
from penstock.epochs.log import EpochLog
from penstock.epochs.moments import Moment, reach
from penstock.epochs.orders import Orders
from penstock.epochs.postponed import replays_in
from penstock.epochs.record import EpochRecord
from penstock.epochs.sequence import Anchor
from penstock.epochs.size import next_limit
from penstock.epochs.ticking import Ticks
from penstock.errors import CoordinationError, PenstockError
from penstock.spark.failures import left_out
from penstock.spark.faults import WorkerFault
from penstock.spark.late_watermark import late_watermark_of_newest
from penstock.spark.malformed import MalformedLedger
from penstock.spark.numbering import SEQUENCE, Picks, numbered, picked, slices_to_replay, timed, without
from penstock.spark.read_settings import ReadSettings
from penstock.spark.rounds import Rounds
from penstock.spark.rows_made import numbers_of_picks, numbers_of_rows
from penstock.spark.signals import Held, Signals
from penstock.spark.table_versions import TableVersions
from penstock.spark.worker_process import settle_in

__all__ = ["FORMAT", "SEQUENCE", "EpochDataSource", "EpochReader", "offset_epoch"]

FORMAT = "penstock"

SMALL_EPOCH_TUPLES = 20_000
_SMALL_EPOCH_BYTES = 8 << 20
_SLOWER = 0.9
"""The pace of time where a clock is behind that of the epochs."""
_PAUSE_SECONDS = 0.2
_ORDERS_SECONDS = 0.25
"""How often a reader looks whether somebody wants another interval."""


class EpochDataSource(DataSource):
    """`spark.readStream.format("penstock")` with the options `settings` and `source`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        settings = ReadSettings.from_json(self.options["settings"])
        if "clock" in self.options:
            from penstock.spark.clock import ClockReader, ClockSettings

            return ClockReader(settings, ClockSettings.from_json(self.options["clock"]))
        return EpochReader(settings, self.options["source"])


class EpochPartition(InputPartition):
    """One slice of one source to read in an epoch: new, or where `picks` stand in an earlier one."""

    def __init__(
        self, epoch: int, time_ms: int, part: Slice, picks: Picks | None = None, mark_ms: int | None = None
    ) -> None:
        self.epoch = epoch
        self.time_ms = time_ms
        self.mark_ms = mark_ms
        self.part = part
        self.picks = picks


@dataclass
class _Ahead:
    """What was cut while a run is frozen."""

    newest: dict[str, Any]
    """The offset of the newest epoch that is agreed."""
    since: float
    cut_at: float
    """Since when it is frozen, and when the newest was cut or seen."""


class EpochReader(_SimpleStreamReaderWrapper):
    """Reads one source of a topology; several readers of a run agree through the epoch log.

    Of Spark's kinds of reader, only `_SimpleStreamReaderWrapper` may hand over tuples together with the partitions,
    see `getCache`. Nothing else of it is used.
    """

    simple_reader: Any = None

    def __init__(self, settings: ReadSettings, source: str) -> None:
        self._settings = settings
        self._source = next(item for item in settings.sources if item.name == source)
        self._rounds = Rounds(Path(settings.state), settings.run)
        self._read_ahead: list[pa.RecordBatch] | None = None
        self._seen = 0, 0.0
        """The last epoch, and when this reader saw it first."""
        self._cut = 0, 0.0
        """The last epoch that this reader has cut, and when."""
        self._limit = settings.max_tuples
        self._wanted = -_ORDERS_SECONDS, 0.0
        """When it last looked for another interval, and the interval."""
        self._ahead: _Ahead | None = None
        """What it has received while its run is frozen."""

    # -- on the driver --------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        ends = {name: connector.start() for name, connector in self._connectors.items()}
        return _offset(EpochRecord(0, 0, ends, {}))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        try:
            record = None if start["last"] else self._answer(start)
        except PenstockError as error:
            raise WorkerFault("connector", str(error)) from error
        return start if record is None else _offset(record)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def commit(self, end: dict[str, Any]) -> None:
        """The sinks keep account of what is committed."""

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        name = self._source.name
        self._read_ahead = None
        begin, finish = json.loads(start["ends"])[name], json.loads(end["ends"])[name]
        replays = json.loads(end.get("replays", "{}")).get(name)
        replayed = self._replayed(end["epoch"], end["time_ms"]) if replays else []
        if begin == finish:
            return replayed
        small = name in self._settings.read_ahead and json.loads(end["tuples"])[name] <= SMALL_EPOCH_TUPLES
        if small:
            parts = self._slices(begin, finish, 1, end)
            if len(parts) == 1:
                self._read_ahead = self._read_if_small(parts[0])
            if self._read_ahead is not None:
                return parts
        return [*self._slices(begin, finish, self._settings.parallelism, end), *replayed]

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[Any] | None:
        """The tuples of a small epoch, read ahead in this process: no task needs Python to read it."""
        return None if self._read_ahead is None else iter(self._read_ahead)

    def _slices(
        self, begin: dict[str, Any], finish: dict[str, Any], parallelism: int, offset: dict[str, Any]
    ) -> list[EpochPartition]:
        try:
            parts = self._connectors[self._source.name].slices(begin, finish, parallelism)
        except PenstockError as error:
            raise WorkerFault("connector", str(error)) from error
        mark = self._mark()
        return [EpochPartition(offset["epoch"], offset["time_ms"], part, mark_ms=mark) for part in parts]

    def _mark(self) -> int | None:
        """The watermark by which tuples of the epoch that is being planned are late, where that is wanted."""
        return late_watermark_of_newest(Path(self._settings.state)) if self._settings.marked else None

    def _replayed(self, epoch: int, time_ms: int) -> list[EpochPartition]:
        """Where the tuples stand that failed earlier and are read again in this epoch."""
        try:
            replays = replays_in(epoch, self._log.all_postponed())
            own = (replay for replay in replays if replay.anchor.source == self._number)
            found = slices_to_replay(self._connectors[self._source.name], own)
        except PenstockError as error:
            raise WorkerFault("connector", str(error)) from error
        mark = self._mark()
        return [EpochPartition(epoch, time_ms, part, picks, mark) for part, picks in found]

    def _read_if_small(self, partition: EpochPartition) -> list[pa.RecordBatch] | None:
        taken, size = [], 0
        for rows in self.read(partition):
            size += rows.nbytes
            if size > _SMALL_EPOCH_BYTES:
                return None
            taken.append(rows)
        return taken

    def _answer(self, start: Mapping[str, Any]) -> EpochRecord | None:
        """The next epoch, or None while there is none; the same for every source of the micro-batch."""
        if self._settings.alone:
            return self._next_epoch(start)
        answered = self._rounds.next()
        if answered is None:
            record = self._next_epoch(start)
            self._rounds.answer(start["epoch"] if record is None else record.epoch)
            return record
        while answered > start["epoch"]:
            try:
                record = self._log.get(answered)
            except CoordinationError as error:
                # The first source has moved on already: there is no way back, so wait.
                self._signals.coordinator_away(str(error))
                time.sleep(_PAUSE_SECONDS)
            else:
                self._signals.coordinator_back()
                return record
        return None

    def _next_epoch(self, start: Mapping[str, Any]) -> EpochRecord | None:
        """The next epoch from the log, or cut now; None also while the coordinator cannot be reached."""
        held, record = self._signals.held(), None
        try:
            if held is Held.NOT:
                self._ahead = None
                record = self._agree(start)
            else:
                # How long it stands still says nothing of how long an epoch takes.
                self._cut = 0, 0.0
                if held is Held.RECEIVING:
                    self._receive(start)
        except CoordinationError as error:
            self._signals.coordinator_away(str(error))
            return None
        self._signals.coordinator_back()
        if record is not None and self._settings.tables:
            self._tables.fetch(record.tables, record.time_ms / 1000)
        return record

    def _agree(self, start: Mapping[str, Any]) -> EpochRecord | None:
        epoch = start["epoch"] + 1
        agreed = self._log.get(epoch)
        if agreed is not None or self._signals.stop_wanted():
            return agreed
        self._resize(start)
        return self._cut_after(start)

    def _receive(self, start: Mapping[str, Any]) -> None:
        """Cut what has come into epochs, which are done when the run goes on; `start` is the last that it has done."""
        now = time.monotonic()
        if self._ahead is None:
            known = self._log.newest()
            newest = dict(start) if known is None or known.epoch < start["epoch"] else _offset(known)
            self._ahead = _Ahead(newest, now, now)
        while (agreed := self._log.get(self._ahead.newest["epoch"] + 1)) is not None:
            # By a sibling that is frozen as well.
            self._ahead.newest, self._ahead.cut_at = _offset(agreed), now
        newest = self._ahead.newest
        due = is_due(now - self._ahead.since, now - self._ahead.cut_at, newest["backlog"] > 0)
        if due and not (newest["last"] or self._signals.stop_wanted()):
            record = self._cut_after(newest, ahead=True)
            if record is not None:
                newest = self._ahead.newest = _offset(record)
                self._ahead.cut_at = now
        self._signals.note_received(newest["epoch"] - start["epoch"])

    def _cut_after(self, start: Mapping[str, Any], ahead: bool = False) -> EpochRecord | None:
        """Propose the epoch after `start`, and return what is agreed; None while there is nothing for it.

        Of one that is cut ahead, nobody knows when it is done; its tables stay as they were, for not all are kept.
        """
        now = self._time_after(start)
        if self._is_too_soon(start, now):
            return None
        filled = any((*json.loads(start["tuples"]).values(), *json.loads(start.get("replays", "{}")).values()))
        tick = self._ticks.due(start["epoch"], start["time_ms"], filled, now)
        postponed = self._log.all_postponed() if self._settings.retries else None
        ended = json.loads(start.get("ended", "[]")) if self._settings.windows_close else None
        cut = partial(
            cut_next_epoch, start["epoch"] + 1, json.loads(start["ends"]), self._connectors, self._limit, now, tick,
            postponed, ended,
        )  # fmt: skip
        proposal = cut()
        tells_an_end = proposal is not None and (proposal.last or len(proposal.ended) > len(ended or ()))
        if tells_an_end and self._orders.end_is_held():
            proposal = cut(end_is_held=True)
        if proposal is None:
            return None
        if self._settings.tables:
            before = json.loads(start.get("tables", "{}"))
            all_known = before.keys() >= {table["name"] for table in self._settings.tables}
            versions = before if ahead and all_known else self._tables.newest(before, now / 1000)
            proposal = replace(proposal, tables=versions)
        record = self._log.propose(proposal)
        self._seen = record.epoch, time.monotonic()
        self._cut = (0, 0.0) if ahead else self._seen
        return record

    def _resize(self, start: Mapping[str, Any]) -> None:
        """Let the next epoch have more tuples, or fewer, by how long the last one took, if this reader has cut it."""
        epoch, since = self._cut
        if epoch != start["epoch"]:
            return
        # When it is asked again, it has only waited for input.
        self._cut = 0, 0.0
        tuples, least = json.loads(start["tuples"]), self._settings.max_tuples
        most = max(least, self._settings.most_tuples)
        self._limit = next_limit(self._limit, least, most, max(tuples.values(), default=0), time.monotonic() - since)

    def _time_after(self, start: Mapping[str, Any]) -> int:
        """The time of an epoch that is cut now, in milliseconds: never before that of the last one.

        Where this clock is behind, for it was set back or that of the replica which cut the last one was ahead, time
        goes on by what has passed, a tenth more slowly until the clock has caught up.
        """
        waited = self._waited_since(start)
        return max(int(time.time() * 1000), int(start["time_ms"] + waited * 1000 * _SLOWER))

    def _waited_since(self, start: Mapping[str, Any]) -> float:
        """Seconds since this reader first saw the last epoch."""
        if self._seen[0] != start["epoch"]:
            self._seen = start["epoch"], time.monotonic()
        return time.monotonic() - self._seen[1]

    def _is_too_soon(self, start: Mapping[str, Any], now: int) -> bool:
        interval = self._interval_ms()
        if not interval or not start["epoch"]:
            return False
        # Also where the clock has jumped back.
        waited: float = max(now - start["time_ms"], self._waited_since(start) * 1000)
        return waited < interval

    def _interval_ms(self) -> float:
        """Between two epochs: as the topology says, unless somebody wants another one."""
        now = time.monotonic()
        if now - self._wanted[0] > _ORDERS_SECONDS:
            wanted = self._orders.interval()
            self._wanted = now, self._settings.interval_ms if wanted is None else wanted * 1000
        return self._wanted[1]

    @cached_property
    def _connectors(self) -> dict[str, SourceConnector]:
        return {source.name: self._settings.connector(source) for source in self._settings.sources}

    @cached_property
    def _tables(self) -> TableVersions:
        enrichments = [enrichment_from_json(fields) for fields in self._settings.tables]
        folder = Path(self._settings.folder)
        tables = {each.name: lookup_table(each, self._settings.topology, folder) for each in enrichments}
        return TableVersions(Path(self._settings.state), tables)

    @cached_property
    def _ticks(self) -> Ticks:
        return Ticks(self._settings.ticks)

    @cached_property
    def _coordinator(self) -> Coordinator:
        return open_coordinator(self._settings.coordinator)

    @cached_property
    def _log(self) -> EpochLog:
        return EpochLog(self._coordinator)

    @cached_property
    def _orders(self) -> Orders:
        return Orders(self._coordinator)

    @cached_property
    def _signals(self) -> Signals:
        return Signals(Path(self._settings.state), self._settings.run)

    # -- on the executors -----------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, EpochPartition)
        settle_in()
        reach(Moment.DURING_TASK, partition.epoch)
        if self._settings.made_natively(self._source) is not None:
            # Replays may come from a sibling of another version.
            numbers = (numbers_of_rows(partition.part, self._base(partition)) if partition.picks is None
                       else numbers_of_picks(partition.part, partition.picks))  # fmt: skip
            yield self._hidden(numbers, partition)
            return
        state = Path(self._settings.state)
        ledger = MalformedLedger(state, self._source)
        gone = pa.array(left_out(state, partition.epoch) if self._settings.retries else [], pa.int64())
        base = self._base(partition)
        position = partition.part.first
        try:
            for chunk in self._settings.connector(self._source).read(partition.part):
                if partition.picks is None:
                    ledger.note(chunk.malformed)
                    rows = without(numbered(chunk, base + position), gone)
                else:
                    rows = without(picked(chunk, position, partition.picks), gone)
                yield self._hidden(rows, partition)
                position += chunk.rows.num_rows + len(chunk.malformed)
            ledger.close(partition.epoch, partition.part.first)
        except PenstockError as error:
            raise WorkerFault("connector", str(error)) from error

    def _base(self, partition: EpochPartition) -> int:
        """The sequence of the first tuple of an epoch."""
        return Anchor(partition.epoch, self._number, 0).sequence

    def _hidden(self, rows: pa.RecordBatch, partition: EpochPartition) -> pa.RecordBatch:
        """With the columns that are the same for all tuples of an epoch."""
        return timed(rows, partition.time_ms, partition.mark_ms) if self._settings.timed else rows

    @property
    def _number(self) -> int:
        return [source.name for source in self._settings.sources].index(self._source.name)

    def __getstate__(self) -> dict[str, Any]:
        # What is cached holds an open database: the executors make their own.
        return {
            "_settings": self._settings,
            "_source": self._source,
            "_rounds": self._rounds,
            "_read_ahead": None,
        }


def offset_epoch(offset: str) -> tuple[int, EpochRecord]:
    """The epoch that an entry of Spark's offset log stands for."""
    fields = json.loads(offset)
    ends = json.loads(fields["ends"])
    record = EpochRecord(
        fields["epoch"],
        fields["time_ms"],
        ends,
        json.loads(fields["tuples"]),
        fields["backlog"],
        fields["last"],
        replays=json.loads(fields.get("replays", "{}")),
        ended=tuple(json.loads(fields.get("ended", "[]"))),
        tables=json.loads(fields.get("tables", "{}")),
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
        "replays": json.dumps(record.replays),
        "ended": json.dumps(list(record.ended)),
        "tables": json.dumps(dict(record.tables)),
    }
