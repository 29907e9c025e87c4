"""Run an epoch's one Spark job, and bring what it gave to the sinks' staging places."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.connectors.base import Staged
from penstock.spark.arrow_stage import map_batches
from penstock.spark.staging import STAGED_SCHEMA, StagingStage

_QUERY_ID = "sql.streaming.queryId"
"""Where Spark notes, for the thread that runs a micro-batch, whose it is."""

StagedBySink = list[list[Staged]]
"""What was staged for each sink, in the order of the topology's sinks and then of the tasks."""

RunEpoch = Callable[[DataFrame, int], StagedBySink]
"""Run the epoch that a micro-batch's DataFrame stands for; the number says how many tuples it reads."""


def forget_results(batch: DataFrame) -> None:
    """Have the next job on this micro-batch compute everything again, from the sources on.

    Spark would take what the last job has shuffled. It looks for that only below ancestors that it has seen, and
    describing the lineage makes it see them all.
    """
    lineage = batch._jdf.queryExecution().toRdd()
    lineage.toDebugString()
    lineage.cleanShuffleDependencies(True)
    # Else what the last job has counted would be counted too. The batch's session does not know its query, Spark does.
    context, jvm = batch.sparkSession.sparkContext, batch.sparkSession._jvm
    assert jvm is not None
    running = batch.sparkSession._jsparkSession.sharedState().activeStreamingQueries()
    query = running.get(jvm.java.util.UUID.fromString(context.getLocalProperty(_QUERY_ID)))
    query.lastExecution().executedPlan().resetMetrics()


def run_staged(sinks: int) -> RunEpoch:
    """For a DataFrame whose tasks have staged their rows already: collect what they say of it."""

    def run(batch: DataFrame, tuples: int) -> StagedBySink:
        # Through the gateway: for these few rows it is faster than Spark's socket to Python.
        rows: list[Any] = list(batch._jdf.collectAsList())
        staged: list[list[tuple[int, Staged]]] = [[] for _ in range(sinks)]
        # The acker's rows stand behind the sinks', and are for no sink.
        for row in (row for row in rows if row.getInt(0) < sinks):
            staged[row.getInt(0)].append((row.getInt(1), Staged(row.getLong(2), json.loads(row.getString(3)))))
        return [[item for _, item in sorted(items, key=lambda pair: pair[0])] for items in staged]

    return run


def run_small_here(spark: SparkSession, stage: StagingStage, sinks: int, small: int, folder: Path) -> RunEpoch:
    """For a DataFrame of tagged rows: bring them to the driver and stage them here when at most `small` tuples
    were read, and have the executors stage them otherwise.

    A small epoch of built-in operators then needs no Python worker at all. `folder` is where rows pass through.
    """
    collect = run_staged(sinks)
    fetch = _Fetch(spark, folder)

    def run(batch: DataFrame, tuples: int) -> StagedBySink:
        if tuples > small:
            return collect(map_batches(batch, stage, STAGED_SCHEMA), tuples)
        staged: StagedBySink = [[] for _ in range(sinks)]
        for number, item in stage.stage(fetch(batch)):
            staged[number].append(item)
        return staged

    return run


class _Fetch:
    """Brings a DataFrame's rows to this process, as Arrow batches in the order of its partitions.

    They come through a file: an answer of the gateway that is longer than 8 KB arrives in two pieces, and the second
    waits 40 ms for the first to be acknowledged.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        jvm: Any = spark._jvm
        # Each name is looked up in the JVM, so they are looked up once.
        self._as_scala = jvm.scala.jdk.javaapi.CollectionConverters.asScala
        self._write = jvm.org.apache.spark.api.python.PythonRDD.writeIteratorToStream
        self._file_stream = jvm.java.io.FileOutputStream
        self._data_stream = jvm.java.io.DataOutputStream
        self._path = folder / f"rows-{uuid.uuid4().hex}.arrow"

    def __call__(self, batch: DataFrame) -> Iterator[pa.RecordBatch]:
        parts = batch._jdf.toArrowBatchRdd().toJavaRDD().collect()
        try:
            stream = self._data_stream(self._file_stream(str(self._path)))
            self._write(self._as_scala(parts.iterator()), stream)
            stream.close()
            content = pa.py_buffer(self._path.read_bytes())
        finally:
            self._path.unlink(missing_ok=True)
        schema = to_arrow_schema(batch.schema, timezone="UTC")
        position = 0
        while position < content.size:
            length = int.from_bytes(content[position : position + 4], "big")
            yield pa.ipc.read_record_batch(content.slice(position + 4, length), schema)
            position += 4 + length
