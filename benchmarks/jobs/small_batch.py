"""How long a small micro-batch takes: source → filter → select → file. `small_batch.py CONTESTANT FOLDER`."""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from pathlib import Path

BATCHES = 400
ROWS = 1000


def with_penstock(folder: Path) -> list[float]:
    from penstock import Topology
    from penstock.runtime.run import Run

    topology = Topology("bench")
    topology = (
        topology.source("numbers", generator={"id": "sequence", "word": "word(26)"}, count=BATCHES * ROWS)
        .filter("id % 2 = 0")
        .select("id", "upper(word) as word")
        .sink("out", file=str(folder / "out.jsonl"))
        .with_folder(folder)
    )
    from dataclasses import replace

    topology = replace(topology, epoch=replace(topology.epoch, max_tuples=ROWS))
    times: list[float] = []
    run = Run(topology)
    run.start()
    commit = run._committer._commit

    def timed(batch, batch_id):  # type: ignore[no-untyped-def]
        commit(batch, batch_id)
        times.append(time.monotonic())

    run._committer._commit = timed  # type: ignore[method-assign]
    run.wait()
    return times


def by_hand(contestant: str, folder: Path) -> list[float]:
    import pyarrow as pa
    from by_hand import session
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        def initialOffset(self):  # type: ignore[no-untyped-def]
            return {"row": 0}

        def latestOffset(self, start, limit):  # type: ignore[no-untyped-def]
            return {"row": min(start["row"] + ROWS, BATCHES * ROWS)}

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

    spark = session(contestant)
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
    while len(times) < BATCHES:
        query.awaitTermination(1)
    query.stop()
    spark.stop()
    return times


def main() -> None:
    contestant, folder = sys.argv[1], Path(sys.argv[2])
    times = with_penstock(folder) if contestant == "penstock" else by_hand(contestant, folder)
    gaps = [(after - before) * 1000 for before, after in itertools.pairwise(times)]
    late = gaps[len(gaps) // 2 :]
    print(json.dumps({"median_ms": statistics.median(late), "p95_ms": sorted(late)[int(len(late) * 0.95)]}))


if __name__ == "__main__":
    main()
