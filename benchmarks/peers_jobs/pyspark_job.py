"""PySpark as one writes it by hand, with Spark's own settings. `pyspark_job.py WORK`.

The clock runs from the started session, in which the job was run before with less input, to the last commit.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from work import (
    AMOUNTS,
    JVM_MEMORY,
    LETTERS,
    PARALLELISM,
    STEP,
    USERS,
    WORD_BYTES,
    Work,
    read_work,
    report,
)

WORD = f"repeat(char(97 + id * {STEP} % {len(LETTERS)}), {WORD_BYTES})"
EVENTS = "id bigint, user string, kind string, page string, price double, note string"


def total(user: int, amount: int) -> int:
    return user * 100 + amount


def total_of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sums = pc.add(pc.multiply(batch.column("user"), 100), batch.column("amount"))
        yield pa.RecordBatch.from_arrays([batch.column("id"), sums], names=["id", "total"])


def numbers(spark: SparkSession, work: Work) -> DataFrame:
    """All in one micro-batch, as the fewest cost least; with a rate, as many as are due."""
    if work.rate is None:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", work.tuples)
    else:
        source = spark.readStream.format("rate").option("rowsPerSecond", work.rate)
    return source.load().where(f"value < {work.tuples}").selectExpr("value as id")


def results(spark: SparkSession, work: Work) -> DataFrame:
    if work.job == "json":
        events = spark.readStream.schema(EVENTS).json(str(work.input))
        sold = events.where("price > 10").selectExpr("user", "upper(kind) as kind", "price * 1.23 as gross")
        return sold.groupBy("user", "kind").count()
    ids = numbers(spark, work)
    if work.job == "stateless":
        tuples = ids.selectExpr("id", f"{WORD} as payload")
        return tuples.where("length(payload) > 0").where("payload <> ''").select("id")
    if work.job in ("word-count", "recovery"):
        return ids.selectExpr(f"{WORD} as word").groupBy("word").count()
    payments = ids.selectExpr("id", f"id * {STEP} % {USERS} as user", f"id % {AMOUNTS} as amount")
    if work.job == "function":
        return payments.select("id", F.udf(total, "bigint")("user", "amount").alias("total"))
    return payments.mapInArrow(total_of_batches, "id bigint, total bigint")


def started(spark: SparkSession, work: Work) -> Any:
    writer = results(spark, work).writeStream.option("checkpointLocation", str(work.folder / "checkpoint"))
    if work.rate is None:
        writer = writer.trigger(availableNow=True)
    if work.job in ("stateless", "function", "batch-function"):
        return writer.format("csv").start(str(work.out))

    def write(batch: DataFrame, _: int) -> None:
        batch.write.mode("append").csv(str(work.out))

    # Spark's file sink takes no rows that change.
    return writer.outputMode("update").foreachBatch(write).start()


def seconds_done(query: Any) -> int:
    """The place in a source with a rate is the number of seconds."""
    progress = query.lastProgress
    return 0 if progress is None else int(progress["sources"][0]["endOffset"])


def run_to_the_end(spark: SparkSession, work: Work) -> float:
    began = time.monotonic()
    query = started(spark, work)
    if work.rate is None:
        query.awaitTermination()
    else:
        while seconds_done(query) * work.rate < work.tuples and not query.awaitTermination(1):
            pass
        query.stop()
    return time.monotonic() - began


def main() -> None:
    work = read_work(sys.argv[1])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master(f"local[{PARALLELISM}]").config("spark.driver.memory", JVM_MEMORY)
        .config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    if work.rate is None:
        run_to_the_end(spark, work.warm_up())
    report(run_to_the_end(spark, work))
    spark.stop()


if __name__ == "__main__":
    main()
