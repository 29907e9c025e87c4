"""How long a small micro-batch takes: source → filter → select → file. `small_batch.py CONTESTANT FOLDER [SECONDS]`.

A JVM compiles what it runs often for about a thousand micro-batches; so each contestant works for SECONDS, and only the
last quarter counts.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from penstock import Topology
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Run, RunSettings

SECONDS = 90.0
ROWS = 1000


def with_penstock(folder: Path, seconds: float, settings: RunSettings | None = None) -> list[float]:
    """The moments at which epochs were committed."""
    topology = (
        Topology("bench")
        .source("numbers", generator={"id": "sequence", "word": "word(26)"})
        .filter("id % 2 = 0")
        .select("id", "upper(word) as word")
        .sink("out", file=str(folder / "out.jsonl"))
        .with_folder(folder)
    )
    topology = replace(topology, epoch=replace(topology.epoch, max_tuples=ROWS))
    times: list[float] = []
    run = Run(topology, settings)
    run.start()
    commit = run._committer._commit

    def timed(batch, batch_id):  # type: ignore[no-untyped-def]
        commit(batch, batch_id)
        times.append(time.monotonic())

    run._committer._commit = timed  # type: ignore[method-assign]

    def look(_: Snapshot) -> None:
        if times and times[-1] - times[0] > seconds:
            run.stop()

    run.wait(look)
    return times


def by_hand(contestant: str, folder: Path, seconds: float) -> list[float]:
    import pyarrow as pa
    from by_hand import session
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        def initialOffset(self):  # type: ignore[no-untyped-def]
            return {"row": 0}

        def latestOffset(self, start, limit):  # type: ignore[no-untyped-def]
            return {"row": start["row"] + ROWS}

        def partitions(self, start, end):  # type: ignore[no-untyped-def]
            return [InputPartition((start["row"], end["row"]))] if start != end else []

        def read(self, partition):  # type: ignore[no-untyped-def]
            ids = list(range(*partition.value))
            yield pa.RecordBatch.from_pydict({"id": ids, "word": [f"word{number % 26}" for number in ids]})

    class Numbers(DataSource):
        @classmethod
        def name(cls):  # type: ignore[no-untyped-def]
            return "numbers"

        def schema(self):  # type: ignore[no-untyped-def]
            return "id bigint, word string"

        def streamReader(self, schema):  # type: ignore[no-untyped-def]
            return Reader()

    spark = session(contestant, folder)
    spark.dataSource.register(Numbers)
    times: list[float] = []
    frame = spark.readStream.format("numbers").load().where("id % 2 = 0").selectExpr("id", "upper(word) as word")

    def write(batch, batch_id):  # type: ignore[no-untyped-def]
        batch.write.mode("append").json(str(folder / "out"))
        times.append(time.monotonic())

    query = (
        frame.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    while not times or times[-1] - times[0] < seconds:
        if query.awaitTermination(1):
            raise SystemExit("the query ended by itself")
    query.stop()
    spark.stop()
    return times


def figures(times: list[float]) -> dict[str, float]:
    """Of the last quarter: how long an epoch took, in the middle and at worst but for one in twenty."""
    begin = times[-1] - (times[-1] - times[0]) / 4
    late = sorted((after - before) * 1000 for before, after in itertools.pairwise(times) if before >= begin)
    return {"median_ms": statistics.median(late), "p95_ms": late[int(len(late) * 0.95)], "epochs": len(times)}


def main() -> None:
    contestant, folder = sys.argv[1], Path(sys.argv[2])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else SECONDS
    times = with_penstock(folder, seconds) if contestant == "penstock" else by_hand(contestant, folder, seconds)
    print(json.dumps(figures(times)))


if __name__ == "__main__":
    main()
