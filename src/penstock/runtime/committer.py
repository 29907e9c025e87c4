"""Commit epochs at the sinks, each once, in order."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.connectors.base import SinkConnector, Staged
from penstock.epochs.record import EpochRecord
from penstock.runtime.progress import Progress
from penstock.runtime.state_folder import Committed, StateFolder
from penstock.spark.epoch_source import offset_epoch
from penstock.spark.malformed import collect_malformed
from penstock.spark.staging import LINE


@dataclass
class Committer:
    """Called by Spark with every micro-batch of staged rows; see `__call__`."""

    state: StateFolder
    sinks: dict[str, SinkConnector]
    dead_letters: SinkConnector
    progress: Progress
    failure: BaseException | None = None
    finished_batch: int | None = None
    """The micro-batch that held the last epoch, once it is committed."""

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Run the epoch (one Spark job), then commit it at every sink."""
        try:
            self._commit(batch, batch_id)
        except BaseException as error:
            self.failure = error
            raise

    def _commit(self, batch: DataFrame, batch_id: int) -> None:
        record = self._record_of(batch_id)
        began = time.monotonic()
        staged = _collect(batch, list(self.sinks))
        malformed, letters = collect_malformed(self.state.path, record.epoch)
        if record.epoch > self.state.committed().epoch:
            for name, sink in self.sinks.items():
                sink.commit(record.epoch, staged[name])
            if letters:
                self._bury(record.epoch, letters)
            self.state.record(Committed(record.epoch, record.last))
        else:
            for name, sink in self.sinks.items():
                sink.abort(staged[name])
        self._count(record, staged, malformed, began)
        if record.last:
            self.finished_batch = batch_id

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
        self.progress.epoch_committed(record.epoch, record.backlog, took, delivered, malformed)

    def _bury(self, epoch: int, letters: list[str]) -> None:
        lines = pa.array([json.dumps({"epoch": epoch, **json.loads(letter)}) + "\n" for letter in letters])
        rows = pa.RecordBatch.from_arrays([lines], names=[LINE])
        self.dead_letters.commit(epoch, [self.dead_letters.stage(iter([rows]))])


def _collect(batch: DataFrame, names: list[str]) -> dict[str, list[Staged]]:
    """Run the epoch and bring back what its tasks staged, by sink and in task order.

    `collectAsList` through the gateway: for these few rows it is faster than Spark's socket to Python.
    """
    rows: list[Any] = list(batch._jdf.collectAsList())
    staged: dict[str, list[tuple[int, Staged]]] = {name: [] for name in names}
    for row in rows:
        detail = json.loads(row.getString(3))
        staged[names[row.getInt(0)]].append((row.getInt(1), Staged(row.getLong(2), detail)))
    return {name: [item for _, item in sorted(items, key=lambda pair: pair[0])] for name, items in staged.items()}
