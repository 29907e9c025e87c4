"""What Spark can do with a checkpoint that no query uses: divide its state anew, and read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def divide_state(spark: SparkSession, checkpoint: Path, instances: int) -> None:
    """Divide the state of a checkpoint over another number of instances; it adds a micro-batch without input.

    The last micro-batch must be committed. Nothing guards against a crash meanwhile: give it a copy.
    """
    manager: Any = spark._streamingCheckpointManager
    try:
        manager.repartition(str(checkpoint), instances)
    finally:
        forget_loaded_state(spark)


def forget_loaded_state(spark: SparkSession) -> None:
    """Close what is loaded of state in this process; nothing happens while a query runs in this session.

    Spark looks after the state of a query for another minute, and writes and removes files where it was; by then
    something else may be in that place.
    """
    if not spark.streams.active:
        jvm: Any = spark._jvm
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()


def read_state(spark: SparkSession, checkpoint: Path, operator: int, **options: str) -> DataFrame:
    """The state that Spark keeps under a number, after the newest batch: columns `key`, `value`, `partition_id`."""
    reader = spark.read.format("statestore").option("operatorId", operator)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(str(checkpoint))
