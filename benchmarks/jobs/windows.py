"""Parquet → ten-minute windows per key → JSON lines. `windows.py CONTESTANT FOLDER CLICKS EPOCH_FILES`.

EPOCH_FILES is how many of the files make an epoch, and a micro-batch of the hand-written job.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from make_clicks import FILE_TUPLES

SCHEMA = "clicked_at timestamp, user bigint, amount double"


def with_penstock(folder: Path, clicks: Path, epoch_files: int) -> tuple[float, int]:
    from penstock import Topology
    from penstock.runtime.run import Run

    topology = (
        Topology("bench")
        .source("clicks", file=str(clicks), schema=SCHEMA)
        .window("tumbling(10 minutes)", on="clicked_at", lateness="30s", by="user",
                compute=["count() as clicks", "sum(amount) as total", "max(amount) as largest"])
        .sink("out", file=str(folder / "out.jsonl"))
        .with_folder(folder)
    )
    run = Run(replace(topology, epoch=replace(topology.epoch, max_tuples=epoch_files * FILE_TUPLES)))
    run.start()
    began = time.monotonic()
    outcome = run.wait()
    return time.monotonic() - began, outcome.progress.delivered["out"]


def by_hand(contestant: str, folder: Path, clicks: Path, epoch_files: int) -> tuple[float, int]:
    from by_hand import run_to_the_end, session
    from pyspark.sql import functions as F

    spark = session(contestant, folder)
    # The last batch closes windows by what the one before it has seen.
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    began = time.monotonic()
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", epoch_files).parquet(str(clicks))
    windows = (
        frame.withWatermark("clicked_at", "30 seconds")
        .groupBy("user", F.window("clicked_at", "10 minutes"))
        .agg(F.count(F.lit(1)).alias("clicks"), F.sum("amount").alias("total"), F.max("amount").alias("largest"))
        .selectExpr("user", "window.start as window_start", "window.end as window_end", "clicks", "total", "largest")
    )
    run_to_the_end(windows, "append", folder)
    took = time.monotonic() - began
    rows = spark.read.json(str(folder / "out")).count()
    spark.stop()
    return took, rows


def main() -> None:
    contestant, folder, clicks, epoch_files = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    if contestant == "penstock":
        seconds, rows = with_penstock(folder, clicks, epoch_files)
    else:
        seconds, rows = by_hand(contestant, folder, clicks, epoch_files)
    print(json.dumps({"seconds": seconds, "rows": rows}))


if __name__ == "__main__":
    main()
