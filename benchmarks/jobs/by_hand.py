"""A Spark session as one writes it by hand, with Penstock's settings (`tuned`) or without (`default`)."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from penstock.spark.session import ALWAYS, ON_LOCAL_DISK


def session(contestant: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]").config("spark.driver.memory", "1g")
    if contestant == "tuned":
        for key, value in (ALWAYS | ON_LOCAL_DISK).items():
            builder = builder.config(key, value)
        builder = builder.config("spark.sql.shuffle.partitions", str(os.cpu_count()))
    made = builder.config("spark.ui.enabled", "false").getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made
