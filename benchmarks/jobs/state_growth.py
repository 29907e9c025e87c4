"""What state of so many keys costs: `state_growth.py KEYS FOLDER`. What it is doing is said on standard error.

A count per key is filled in a few large epochs. Then epochs of few tuples change 1,000 and 10,000 of the keys each:
what such an epoch takes, and the bytes that it writes of state, are the cost of Spark's own checkpoint. At last the
state is kept, copied, restored, and divided. All in one started session, which is not counted.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock import Topology
from penstock.runtime.manifest import Manifest
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Run
from penstock.runtime.state_files import newest_committed
from penstock.runtime.state_folder import StateFolder
from penstock.spark.session import SessionSettings, default_master, start_session

FILLING_EPOCHS = 12
"""Enough for RocksDB to have been written whole, and not only as changes."""
CHANGED = (1_000, 10_000)
SMALL_EPOCHS = 12
WARM_UP = 4


class Told:
    """Says what is being done, in place on a terminal and in lines otherwise."""

    def __init__(self, keys: int) -> None:
        self._keys = keys
        self._last = ""

    def __call__(self, what: str, part: float | None = None) -> None:
        said = what if part is None else f"{what}: {min(int(part * 10) * 10, 100)} %"
        if said != self._last:
            self._last = said
            end = "" if sys.stderr.isatty() else "\n"
            start = "\r\033[K" if sys.stderr.isatty() else ""
            print(f"{start}{self._keys:,} keys: {said}", end=end, file=sys.stderr, flush=True)


def run_epochs(topology: Topology, spark: SparkSession, epochs: int, look: Callable[[Snapshot], None]) -> float:
    """Run so many epochs; `look` sees each of them once. The megabytes that RocksDB has in memory in the end."""
    run = Run(topology)
    run.start(spark)
    seen: list[int] = []

    def watch(snapshot: Snapshot) -> None:
        if snapshot.epoch and snapshot.epoch not in seen:
            seen.append(snapshot.epoch)
            look(snapshot)
        if seen and snapshot.epoch - seen[0] + 1 >= epochs:
            run.stop()

    run.wait(watch)
    progress = run._query._jsq.lastProgress()
    return 0.0 if progress is None else sum(
        state["memoryUsedBytes"] for state in json.loads(progress.json())["stateOperators"]) / 1e6


def in_epochs_of(topology: Topology, tuples: int) -> Topology:
    return replace(topology, epoch=replace(topology.epoch, max_tuples=tuples))


def changes_written(state: StateFolder) -> int:
    """The bytes of state that the newest epoch has written."""
    batch = newest_committed(state.checkpoint)
    assert batch is not None
    return sum(file.stat().st_size for file in state.checkpoint.glob(f"state/*/*/{batch + 1}.changelog"))


def small_epochs(topology: Topology, spark: SparkSession, changed: int) -> tuple[float, int, float]:
    """The median milliseconds of an epoch that changes so many keys, the bytes of state that one writes, and the
    megabytes that RocksDB has in memory."""
    taken: list[float] = []
    small = in_epochs_of(topology, changed)
    memory = run_epochs(small, spark, SMALL_EPOCHS, lambda snapshot: taken.append(snapshot.last_epoch_ms))
    return statistics.median(taken[WARM_UP:]), changes_written(StateFolder.of(topology)), memory


def timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def measure(spark: SparkSession, keys: int, folder: Path, tell: Told) -> dict[str, float]:
    topology = (
        Topology("growth").source("rows", generator={"id": "sequence"}).select(f"id % {keys} as key")
        .count("key", name="counts", parallelism=2).sink("out", file="out/").with_folder(folder)
    )
    filling = max(keys // FILLING_EPOCHS, 1)
    figures: dict[str, float] = {}
    figures["fill"] = timed(lambda: run_epochs(
        in_epochs_of(topology, filling), spark, FILLING_EPOCHS + 1,
        lambda snapshot: tell("filling", snapshot.tuples.get("rows", 0) / keys)))
    for changed in CHANGED:
        tell(f"epochs that change {changed:,} keys")
        took, written, memory = small_epochs(topology, spark, changed)
        figures |= {f"epoch_{changed}_ms": took, f"epoch_{changed}_bytes": written, "rocksdb_mb": memory}
    tell("checkpoint")
    kept: list[Manifest] = []
    figures["checkpoint"] = timed(lambda: kept.append(topology.checkpoint("one")))
    figures["state_mb"] = kept[0].size / 1e6
    tell("backup")
    figures["backup"] = timed(lambda: topology.backup(folder / "kept"))
    tell("restore")
    copy = replace(topology, name="copy", sinks=(replace(topology.sinks[0], options=type(topology.sinks[0].options)(
        file="copy/")),))
    figures["restore"] = timed(lambda: copy.restore(folder / "kept"))
    tell("first epoch after the restore")
    first = in_epochs_of(copy, CHANGED[0])
    figures["first_epoch"] = timed(lambda: run_epochs(first, spark, 1, lambda _: None))
    tell("rescale 2 to 5")
    figures["split"] = timed(lambda: topology.rescale("counts", 5))
    tell("rescale 5 to 2")
    figures["merge"] = timed(lambda: topology.rescale("counts", 2))
    tell("done\n" if sys.stderr.isatty() else "done")
    return figures


def main() -> None:
    keys, folder = int(sys.argv[1]), Path(sys.argv[2])
    tell = Told(keys)
    tell("starting Spark")
    spark = start_session(SessionSettings("growth", default_master(), folder / "logs", 2))
    figures = measure(spark, keys, folder, tell)
    spark.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
