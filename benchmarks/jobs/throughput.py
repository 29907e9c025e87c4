"""JSON lines → filter → select → count per key → file. `throughput.py CONTESTANT FOLDER FILE [MAX_TUPLES]`.

MAX_TUPLES is the size of Penstock's epochs.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

SCHEMA = "id bigint, user string, kind string, page string, price double, note string"
CONDITION = "price > 10"
COLUMNS = ("user", "upper(kind) as kind", "price * 1.23 as gross")


def with_penstock(folder: Path, events: Path, max_tuples: int | None = None, coordinator: str | None = None) -> float:
    from penstock import Topology
    from penstock.runtime.run import Run, RunSettings

    topology = (
        Topology("bench")
        .source("events", file=str(events), schema=SCHEMA)
        .filter(CONDITION)
        .select(*COLUMNS)
        .count("user", "kind")
        .sink("out", file=str(folder / "out.jsonl"))
        .with_folder(folder)
    )
    if max_tuples is not None:
        topology = replace(topology, epoch=replace(topology.epoch, max_tuples=max_tuples))
    run = Run(topology, RunSettings(coordinator=coordinator))
    run.start()
    began = time.monotonic()
    run.wait()
    return time.monotonic() - began


def by_hand(contestant: str, folder: Path, events: Path) -> float:
    from by_hand import run_to_the_end, session

    spark = session(contestant, folder)
    began = time.monotonic()
    # A stream of the same micro-batches: Spark's file source cannot cut inside a file, so the file is its batch.
    frame = spark.readStream.schema(SCHEMA).json(str(events.parent / events.name) + "*")
    counted = frame.where(CONDITION).selectExpr(*COLUMNS).groupBy("user", "kind").count()
    run_to_the_end(counted, "update", folder)
    took = time.monotonic() - began
    spark.stop()
    return took


def main() -> None:
    contestant, folder, events = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    max_tuples = int(sys.argv[4]) if len(sys.argv) > 4 else None
    if contestant == "penstock":
        seconds = with_penstock(folder, events, max_tuples)
    else:
        seconds = by_hand(contestant, folder, events)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
