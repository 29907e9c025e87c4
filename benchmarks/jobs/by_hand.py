"""Spark as one writes it by hand, with Penstock's settings (`tuned`) or with Spark's own (`default`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.java import check_java
from penstock.spark.session import SessionSettings, _configuration, _leave_out_checksum_files, default_master

MEMORY = "1g"


def session(contestant: str, folder: Path) -> SparkSession:
    """`tuned` has all that Penstock tells Spark and its JVM: settings, the class archive, no checksum files."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if contestant == "tuned":
        return _tuned(folder / "logs")
    builder = SparkSession.builder.master(default_master()).config("spark.driver.memory", MEMORY)
    made = builder.config("spark.ui.enabled", "false").getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def run_to_the_end(stream: DataFrame, output_mode: str, folder: Path) -> None:
    """Append what the stream gives to the folder's `out`, as JSON lines, until its input ends."""

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("append").json(str(folder / "out"))

    query = (
        stream.writeStream.foreachBatch(write)
        .outputMode(output_mode)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _tuned(logs: Path) -> SparkSession:
    logs.mkdir()
    java = check_java()
    settings = SessionSettings("by hand", default_master(), logs, os.cpu_count() or 2, MEMORY)
    made = SparkSession.builder.config(conf=_configuration(settings, java)).getOrCreate()
    _leave_out_checksum_files(made)
    return made
