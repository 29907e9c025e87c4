"""One query in a bare Spark session, for `penstock bench startup`: `python bare_query.py spark|penstock FOLDER`.

It is what one writes by hand: it reads `FOLDER/in`, writes `FOLDER/out`, and its checkpoint is `FOLDER/checkpoint`.
With `spark` the session has Spark's own settings, and nothing of Penstock's is imported; with `penstock` it has those
that Penstock gives Spark and its JVM.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

SCHEMA = "id bigint, user string, price double"
CONDITION = "price > 10"
COLUMNS = ("id", "price * 1.23 as gross")


def session(settings: str, folder: Path) -> SparkSession:
    if settings == "spark":
        return SparkSession.builder.master(f"local[{os.cpu_count() or 2}]").getOrCreate()
    from penstock.spark.java import check_java
    from penstock.spark.session import SessionSettings, _configuration, _leave_out_checksum_files, default_master

    (folder / "logs").mkdir()
    wanted = SessionSettings("bare", default_master(), folder / "logs", os.cpu_count() or 2)
    made = SparkSession.builder.config(conf=_configuration(wanted, check_java())).getOrCreate()
    _leave_out_checksum_files(made)
    return made


def main() -> None:
    settings, folder = sys.argv[1], Path(sys.argv[2])
    spark = session(settings, folder)
    rows = spark.readStream.schema(SCHEMA).json(str(folder / "in")).where(CONDITION).selectExpr(*COLUMNS)
    query = (
        rows.writeStream.format("json")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
