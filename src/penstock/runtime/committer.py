"""Commit epochs at the sinks, in order, and as often as the topology's delivery allows.

    exactly-once, at-least-once   sinks, then our record, then Spark's commit log: a crash in between does the epoch
                                  again, and sinks that know their epochs find it done
    at-most-once                  our record that it is begun, then the sinks: an epoch that a crash interrupts is
                                  never begun again, and its tuples are counted as lost
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.connectors.base import SinkConnector, Staged
from penstock.epochs.log import EpochLog
from penstock.epochs.moments import Moment, reach
from penstock.epochs.record import EpochRecord
from penstock.errors import CoordinationError
from penstock.runtime.checkpoint import newest_epoch
from penstock.runtime.progress import Progress
from penstock.runtime.state_folder import StateFolder
from penstock.runtime.tuple_failures import Letter, TupleFailures
from penstock.spark.epoch_job import RunEpoch, StagedBySink, forget_results
from penstock.spark.epoch_source import offset_epoch
from penstock.spark.malformed import collect_malformed, discard_malformed
from penstock.spark.staging import LINE
from penstock.topology.model import Delivery

_ANSWER_SECONDS = 60.0
"""How long a coordinator that is away is waited for, where nothing can be done without it."""
_PAUSE_SECONDS = 0.2
_RECORDS_KEPT = 100
"""How many records stay in the log behind the slowest replica: Spark may go back by a few, people look at more."""
_EPOCHS_BETWEEN_NOTES = 20
_LETTERS_AT_ONCE = 1000

ALONE = "0"
"""What a run is called in the epoch log that has no siblings."""


@dataclass
class Committer:
    """Called by Spark with every micro-batch; see `__call__`."""

    delivery: Delivery
    state: StateFolder
    log: EpochLog
    sinks: dict[str, SinkConnector]
    dead_letters: SinkConnector
    progress: Progress
    run_epoch: RunEpoch
    failures: TupleFailures
    replica: str | None = None
    """Its name among its siblings; None when it has none."""
    committed: Callable[[EpochRecord], None] = lambda _: None
    """Called when an epoch is delivered."""
    first: int = 0
    """How many epochs it was the first of its siblings to deliver."""
    last_batch: int = -1
    """The last micro-batch that is committed."""
    failure: BaseException | None = None
    epoch: int | None = None
    """The epoch that it is at, or was at last."""
    finished_batch: int | None = None
    """The micro-batch that held the last epoch, once it is committed."""
    _in_flight: int = field(init=False, default=0)
    """The last epoch that was begun before this start."""
    _retired: bool = field(init=False, default=False)
    _turn: threading.Lock = field(init=False, default_factory=threading.Lock)
    _mark: str = field(init=False, default_factory=lambda: uuid.uuid4().hex)
    """Tells this start from others of the same name."""

    def __post_init__(self) -> None:
        self._committed = self.state.committed()
        newest = newest_epoch(self.state.checkpoint)
        self._in_flight = max(self._committed.begun, 0 if newest is None else newest.epoch)
        self.progress.lost(self._committed.lost_tuples)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Run the epoch (one Spark job), then commit it at every sink."""
        try:
            with self._turn:
                if self._retired:
                    raise CoordinationError("the query is being stopped: this epoch is left to the next one")
                record = self._record_of(batch_id)
                self.epoch = record.epoch
                with self.progress.work.at_work(time.time() - record.time_ms / 1000):
                    self._commit(batch, batch_id, record)
        except BaseException as error:
            self.failure = error
            raise

    def retire(self) -> None:
        """Begin no further epoch. Returns when the one in flight is done, so that another may take over the sinks."""
        with self._turn:
            self._retired = True

    def _commit(self, batch: DataFrame, batch_id: int, record: EpochRecord) -> None:
        reach(Moment.AFTER_OFFSETS, record.epoch)
        began = time.monotonic()
        settled = self.failures.settle(record, partial(self._run, batch, sum(record.tuples.values())))
        staged = dict(zip(self.sinks, settled.staged, strict=True))
        malformed, malformed_letters = collect_malformed(self.state.path, record.epoch)
        letters = itertools.chain(
            ({"epoch": record.epoch, **json.loads(letter)} for letter in malformed_letters),
            self.failures.letters(record.epoch),
        )
        due = self._is_due(record)
        if due:
            self._deliver(record, staged, letters)
        else:
            self._leave_out(record, staged)
        reach(Moment.BEFORE_COMMIT_LOG, record.epoch)
        self.failures.committed(record.epoch)
        discard_malformed(self.state.path, record.epoch)
        self._count(record, staged if due else {}, malformed, began)
        self.progress.tuples_failed(settled.failed, settled.postponed)
        self.progress.came_late(settled.late)
        self._note_progress(record.epoch)
        self.last_batch = batch_id
        if record.last:
            self.finished_batch = batch_id

    def _run(self, batch: DataFrame, tuples: int, before: StagedBySink | None) -> StagedBySink:
        """Run the epoch's job; `before` is what it staged the last time, when it has to run again."""
        if before is not None:
            for sink, staged in zip(self.sinks.values(), before, strict=True):
                sink.abort(staged)
            forget_results(batch)
        return self.run_epoch(batch, tuples)

    def _is_due(self, record: EpochRecord) -> bool:
        if self.delivery is Delivery.AT_MOST_ONCE:
            return record.epoch > max(self._in_flight, self._committed.epoch)
        return record.epoch > self._committed.epoch

    def _deliver(self, record: EpochRecord, staged: dict[str, list[Staged]], letters: Iterator[Letter]) -> None:
        if self._has_a_sibling_delivered(record.epoch) or not self._is_the_one_who_delivers(record.epoch):
            for name, sink in self.sinks.items():
                sink.abort(staged[name])
        else:
            self._commit_at_sinks(record, staged, letters)
        self._committed = replace(self._committed, epoch=record.epoch, ended=record.last)
        self.state.record(self._committed)
        self.committed(record)

    def _has_a_sibling_delivered(self, epoch: int) -> bool:
        if self.replica is None:
            return False
        # Without an answer the sinks are asked: each finds out for itself what it has.
        with contextlib.suppress(CoordinationError):
            return self.log.delivered_by(epoch) is not None
        return False

    def _is_the_one_who_delivers(self, epoch: int) -> bool:
        """At most once means: of all replicas one tries, and no other when it fails. Others may all try."""
        if self.replica is None or self.delivery is not Delivery.AT_MOST_ONCE:
            return True
        # Nobody else can say whether a sibling does; to ask again is safe.
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                return self.log.begins(epoch, self._mark)
            except CoordinationError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _commit_at_sinks(
        self, record: EpochRecord, staged: dict[str, list[Staged]], letters: Iterator[Letter]
    ) -> None:
        if self.delivery is Delivery.AT_MOST_ONCE:
            self._committed = replace(self._committed, begun=record.epoch)
            self.state.record(self._committed)
        for number, (name, sink) in enumerate(self.sinks.items()):
            if number == 1:
                reach(Moment.BETWEEN_SINKS, record.epoch)
            sink.commit(record.epoch, staged[name])
        self._bury(record.epoch, letters)
        if len(self.sinks) == 1:
            reach(Moment.BETWEEN_SINKS, record.epoch)
        if self.replica is not None:
            with contextlib.suppress(CoordinationError):
                self.first += self.log.delivered(record.epoch, self.replica) == self.replica

    def _leave_out(self, record: EpochRecord, staged: dict[str, list[Staged]]) -> None:
        """The epoch was delivered before, or may have been: its rows are thrown away."""
        for name, sink in self.sinks.items():
            sink.abort(staged[name])
        if record.epoch > self._committed.epoch:
            # A sibling has gone on meanwhile.
            is_lost = not self._has_a_sibling_delivered(record.epoch)
            lost = sum(record.tuples.values()) if is_lost else 0
            self._committed = replace(
                self._committed,
                epoch=record.epoch,
                ended=record.last,
                lost_epochs=self._committed.lost_epochs + is_lost,
                lost_tuples=self._committed.lost_tuples + lost,
            )
            self.state.record(self._committed)
            self.progress.lost(self._committed.lost_tuples)

    def _record_of(self, batch_id: int) -> EpochRecord:
        # The offset log says which epoch this is: a state repartition adds a batch of its own, so counting
        # batches would not.
        entry = (self.state.checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
        return offset_epoch(entry[2])[1]

    def _count(
        self, record: EpochRecord, staged: dict[str, list[Staged]], malformed: dict[str, int], began: float
    ) -> None:
        read = {name: number - malformed.get(name, 0) for name, number in record.tuples.items()}
        self.progress.add(read)
        delivered = {name: sum(item.rows for item in items) for name, items in staged.items()}
        took = (time.monotonic() - began) * 1000
        self.progress.epoch_committed(record, took, delivered, malformed)

    def _note_progress(self, epoch: int) -> None:
        """Now and then tell the log how far this replica is, so that old records can go."""
        if epoch % _EPOCHS_BETWEEN_NOTES == 0:
            # If the coordinator is away, the next time is soon enough.
            with contextlib.suppress(CoordinationError):
                self.log.note_progress(self.replica or ALONE, epoch)
                self.log.forget_unneeded(_RECORDS_KEPT)

    def _bury(self, epoch: int, letters: Iterator[Letter]) -> None:
        parts = (list(itertools.islice(letters, _LETTERS_AT_ONCE)) for _ in itertools.count())
        batches = (_lines(part) for part in itertools.takewhile(bool, parts))
        first = next(batches, None)
        if first is not None:
            self.dead_letters.commit(epoch, [self.dead_letters.stage(itertools.chain([first], batches))])


def _lines(letters: list[Letter]) -> pa.RecordBatch:
    lines = pa.array([json.dumps(letter, ensure_ascii=False) + "\n" for letter in letters])
    return pa.RecordBatch.from_arrays([lines], names=[LINE])
