"""Use the second core while Spark starts: run a tiny job of the kind that the first epoch will be.

The first epoch of a fresh JVM spends its time loading classes and starting Python workers. A job on the
side, while the topology is still being planned, does much of that beforehand.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.spark.arrow_stage import map_batches


def warm_up(spark: SparkSession) -> None:
    """Start the job and return at once. Whatever becomes of it does not matter."""
    threading.Thread(target=_run_job, args=(spark,), daemon=True, name="warm-up").start()


def _run_job(spark: SparkSession) -> None:
    with contextlib.suppress(Exception):
        rows = spark.range(0, 4, 1, 2).where("id < 3").groupBy((F.col("id") % 2).alias("key")).count()
        lines = rows.select(F.concat(F.to_json(F.struct("*")), F.lit("\n")).alias("line"))
        map_batches(lines, _pass, "line string")._jdf.collectAsList()


def _pass(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
