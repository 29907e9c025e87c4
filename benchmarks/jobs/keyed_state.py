"""Running totals per key in custom code: `keyed_state.py CONTESTANT FOLDER TUPLES KEYS EPOCH_TUPLES`.

`penstock` is a Bolt with a key, `transform-with-state` the same in Spark's own `transformWithState` with rows, under
Penstock's Spark settings. Both are measured over all epochs but the first eight: until then, Java's second compiler
has as much to do as everybody else together.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.bench.custom_code import Total

WARM_UP = 8


def with_penstock(folder: Path, tuples: int, keys: int, epoch_tuples: int) -> list[float]:
    from penstock import Topology
    from penstock.runtime.run import Run, RunSettings

    topology = (
        Topology("bench")
        .source("numbers", generator={"id": "sequence"}, count=tuples)
        .select(f"concat('user', id * 7919 % {keys}) as user", "id % 100 as amount")
        .custom(Total, key="user", emits="user string, total bigint")
        .sink("out", file=str(folder / "out.jsonl"))
        .with_folder(Path(__file__).parent)
    )
    topology = replace(topology, epoch=replace(topology.epoch, max_tuples=epoch_tuples))
    run = Run(topology, RunSettings(state=folder / "state"))
    run.start()
    ends: list[float] = []
    seen = 0

    def look(snapshot: Any) -> None:
        nonlocal seen
        if snapshot.epoch > seen:
            seen = snapshot.epoch
            ends.append(time.monotonic())

    run.wait(look)
    return ends


def with_transform_with_state(folder: Path, tuples: int, keys: int, epoch_tuples: int) -> list[float]:
    from by_hand import session
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    class Totals(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "total bigint")

        def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
            before = self.total.get()
            now = before[0] if before else 0
            for row in rows:
                now += row.amount
                if row.amount == 0:
                    yield Row(user=key[0], total=now)
            self.total.update((now,))

        def close(self) -> None: ...

    spark = session("tuned", folder)
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", epoch_tuples).load()
    payments = numbers.selectExpr(f"concat('user', value * 7919 % {keys}) as user", "value % 100 as amount")
    totals = payments.groupBy("user").transformWithState(Totals(), "user string, total bigint", "update", "none")
    ends: list[float] = []

    def write(batch: Any, batch_id: int) -> None:
        batch.write.mode("append").json(str(folder / "out"))
        ends.append(time.monotonic())

    query = (
        totals.writeStream.foreachBatch(write)
        .outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    while query.isActive and len(ends) < tuples // epoch_tuples:
        time.sleep(0.1)
    query.stop()
    spark.stop()
    return ends


def main() -> None:
    contestant, folder = sys.argv[1], Path(sys.argv[2])
    tuples, keys, epoch_tuples = (int(text) for text in sys.argv[3:6])
    run = with_penstock if contestant == "penstock" else with_transform_with_state
    ends = run(folder, tuples, keys, epoch_tuples)[WARM_UP:]
    seconds = [later - sooner for sooner, later in pairwise(ends)]
    print(json.dumps({"tuples_per_second": epoch_tuples / statistics.median(seconds), "epochs": len(ends)}))


if __name__ == "__main__":
    main()
