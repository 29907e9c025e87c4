"""Spark's own plan of a topology, without running it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.runtime.run import Run, RunSettings
from penstock.topology.model import Topology


def spark_plan(topology: Topology, spark: SparkSession | None = None) -> str:
    """The physical plan of the whole topology as one query."""
    with tempfile.TemporaryDirectory(prefix="penstock-plan-") as folder:
        run = Run(topology, RunSettings(state=Path(folder)))
        return run.explain(spark)
