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
    manager.repartition(str(checkpoint), instances)


def read_state(spark: SparkSession, checkpoint: Path, operator: int, **options: str) -> DataFrame:
    """The state that Spark keeps under a number, after the newest batch: columns `key`, `value`, `partition_id`."""
    reader = spark.read.format("statestore").option("operatorId", operator)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(str(checkpoint))
