"""How the time of a checkpoint, a backup, a restore and a rescale grows with the number of keys in the state.

    python benchmarks/state_growth.py [--keys 10000 100000 1000000 5000000]

Spark is started once and not counted. The checkpoint is taken a second time after one more epoch: what it costs does
not depend on what has changed, and hardly on how much there is.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock import Topology
from penstock.runtime.manifest import Manifest
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Run
from penstock.spark.session import SessionSettings, default_master, start_session
from penstock.topology.model import EpochSettings

EPOCHS = 12
"""So many epochs bring the keys: enough for RocksDB to have been written whole."""


def fill(topology: Topology, spark: SparkSession, tuples: int) -> None:
    """Run until so many more tuples are counted."""
    run = Run(topology)
    run.start(spark)

    def look(snapshot: Snapshot) -> None:
        if snapshot.tuples.get("rows", 0) >= tuples:
            run.stop()

    run.wait(look)


def timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def measure(spark: SparkSession, keys: int, folder: Path) -> None:
    topology = replace(
        Topology("growth").source("rows", generator={"id": "sequence"}).count("id", name="counts", parallelism=2)
        .sink("out", file="out/"), folder=folder, epoch=EpochSettings(max_tuples=max(keys // EPOCHS, 1)))
    fill(topology, spark, keys)
    taken: list[Manifest] = []
    first = timed(lambda: taken.append(topology.checkpoint("first")))
    fill(topology, spark, 1)
    again = timed(lambda: taken.append(topology.checkpoint("second")))
    copied = timed(lambda: topology.backup(folder / "kept"))
    copy = replace(topology, name="copy", sinks=(replace(topology.sinks[0], options=type(topology.sinks[0].options)(
        file="copy/")),))
    restored = timed(lambda: copy.restore(folder / "kept"))
    split = timed(lambda: topology.rescale("counts", 5))
    merged = timed(lambda: topology.rescale("counts", 2))
    shown = (first, again, copied, restored, split, merged)
    print(f"{keys:>10,} {taken[-1].size / 1e6:>9.1f} " + " ".join(f"{seconds:>10.2f}" for seconds in shown), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 5_000_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-growth-") as scratch:
        spark = start_session(SessionSettings("growth", default_master(), Path(scratch, "logs"), 2))
        columns = ("checkpoint", "again", "backup", "restore", "2 to 5", "5 to 2")
        print(f"{'keys':>10} {'MB':>9} " + " ".join(f"{column:>10}" for column in columns) + "   seconds")
        for keys in options.keys:
            folder = Path(scratch, str(keys))
            folder.mkdir()
            measure(spark, keys, folder)
        spark.stop()


if __name__ == "__main__":
    main()
