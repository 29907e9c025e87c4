"""The sinks' end of the query: rows of all sinks tagged and in one stream, staged by the executors."""

from __future__ import annotations

import itertools
import json
import pickle
import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.connectors.base import SinkConnector, Staged
from penstock.errors import PenstockError
from penstock.spark.faults import WorkerFault
from penstock.spark.line_encoding import line_of
from penstock.spark.worker_process import task_number
from penstock.topology.code import importable_from, load_user_object

SINK = "__sink"
LINE = "line"
STAGED_SCHEMA = "sink int, task int, rows bigint, detail string"

_QUEUED_BATCHES = 4


def tagged_rows(frame: DataFrame, sink: str, sinks: dict[str, SinkConnector]) -> DataFrame:
    """The sink's rows with its number, encoded natively; columns that belong to other sinks are absent.

    The columns are the same for all sinks of a topology, so that their rows can be put in one stream:
    `line` for those that take text, and one struct for every sink that takes columns.
    """
    connector = sinks[sink]
    number = list(sinks).index(sink)
    line = line_of(frame, connector.encoding)
    if line is not None:
        return frame.select(F.lit(number).alias(SINK), line.alias(LINE))
    row = F.struct(*(F.col(f"`{name}`") for name in frame.columns)).alias(_row(number))
    return frame.select(F.lit(number).alias(SINK), F.lit(None).cast("string").alias(LINE), row)


def align(frames: dict[str, DataFrame]) -> list[DataFrame]:
    """Give every sink's frame the struct columns of the others, empty, so that they can be united."""
    structs = {
        name: frame.schema[name].dataType
        for frame in frames.values()
        for name in frame.columns
        if name not in (SINK, LINE)
    }
    return [
        frame.select(
            SINK,
            LINE,
            *(
                F.col(name) if name in frame.columns else F.lit(None).cast(kind).alias(name)
                for name, kind in structs.items()
            ),
        )
        for frame in frames.values()
    ]


@dataclass(frozen=True)
class StagingStage:
    """Runs in every task: hands each sink its rows and reports what was staged.

    The sinks travel packed, because a user's own class can only be unpacked where imports look into the
    topology's folder.
    """

    packed: bytes
    folder: str
    own_classes: tuple[str, ...]

    @classmethod
    def of(cls, sinks: Iterable[SinkConnector], folder: Path) -> StagingStage:
        kept = tuple(sinks)
        names = {f"{type(sink).__module__}:{type(sink).__qualname__}" for sink in kept}
        own = sorted(name for name in names if not name.startswith("penstock."))
        return cls(pickle.dumps(kept), str(folder), tuple(own))

    @cached_property
    def sinks(self) -> tuple[SinkConnector, ...]:
        return _unpack(self)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.told(self.stage(batches))

    def told(self, staged: list[tuple[int, Staged]]) -> Iterator[pa.RecordBatch]:
        """What was staged, as a row for each sink that got any."""
        if staged:
            yield pa.RecordBatch.from_pydict(
                {
                    "sink": pa.array([number for number, _ in staged], pa.int32()),
                    "task": pa.array([task_number()] * len(staged), pa.int32()),
                    "rows": pa.array([item.rows for _, item in staged], pa.int64()),
                    "detail": [json.dumps(item.detail) for _, item in staged],
                }
            )

    def stage(self, batches: Iterator[pa.RecordBatch]) -> list[tuple[int, Staged]]:
        """Hand the rows to their sinks; by the sink's number, what each has staged."""
        if len(self.sinks) == 1:
            return self.stage_for_one(self._rows(0, batch) for batch in batches if batch.num_rows)
        lanes: dict[int, _Lane] = {}
        for batch in batches:
            for number in pc.unique(batch.column(SINK)).to_pylist():
                chosen = batch.filter(pc.equal(batch.column(SINK), number))
                if number not in lanes:
                    lanes[number] = _Lane(self.sinks[number])
                lanes[number].put(self._rows(number, chosen))
        return [(number, lane.finish()) for number, lane in sorted(lanes.items())]

    def stage_for_one(self, filled: Iterator[pa.RecordBatch]) -> list[tuple[int, Staged]]:
        """Hand rows to the only sink, as it takes them; no batch is empty."""
        first = next(filled, None)
        return [] if first is None else [(0, _guarded(self.sinks[0], itertools.chain([first], filled)))]

    def _rows(self, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.sinks[number].encoding != "columns":
            return batch.select([LINE])
        column = batch.column(_row(number))
        return pa.RecordBatch.from_struct_array(column)


@lru_cache(maxsize=16)
def _unpack(stage: StagingStage) -> tuple[SinkConnector, ...]:
    """A stage's sinks; a worker process that runs many tasks of it unpacks them once."""
    for name in stage.own_classes:
        # A worker may have served another topology, whose module of the same name must go first.
        load_user_object(name, Path(stage.folder))
    with importable_from(Path(stage.folder)):
        unpacked: tuple[SinkConnector, ...] = pickle.loads(stage.packed)
    return unpacked


class _Lane:
    """One sink of several in a task: it stages in a thread of its own, fed through a short queue."""

    def __init__(self, sink: SinkConnector) -> None:
        self._queue: queue.Queue[pa.RecordBatch | None] = queue.Queue(_QUEUED_BATCHES)
        self._sink = sink
        self._staged: Staged | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, batch: pa.RecordBatch) -> None:
        self._queue.put(batch)

    def finish(self) -> Staged:
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._staged is not None
        return self._staged

    def _run(self) -> None:
        feed = iter(self._queue.get, None)
        try:
            self._staged = _guarded(self._sink, feed)
        except BaseException as error:
            self._error = error
            for _ in feed:  # keep the producer from waiting on a full queue
                pass


def _guarded(sink: SinkConnector, batches: Iterator[pa.RecordBatch]) -> Staged:
    try:
        return sink.stage(batches)
    except PenstockError as error:
        raise WorkerFault("connector", str(error)) from error


def _row(number: int) -> str:
    return f"row{number}"
