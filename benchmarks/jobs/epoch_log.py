"""What the epoch log costs: the same run with a log, and with none at all.

`epoch_log.py LOG FOLDER small SECONDS` or `epoch_log.py LOG FOLDER bounded FILE`, where LOG is `sqlite`,
`zookeeper://host:port/root` or `none`.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import small_batch
import throughput

from penstock.epochs.log import EpochLog
from penstock.epochs.record import EpochRecord
from penstock.runtime.run import RunSettings
from penstock.spark.zygote import zygote_launcher


def do_without_a_log() -> None:
    """Every proposal is agreed at once, and nothing is kept: as if each reader decided for itself."""

    def nothing(*_: Any) -> None:
        return None

    def agreed(_: EpochLog, record: EpochRecord) -> EpochRecord:
        return record

    for name in ("get", "clear", "note_progress", "forget_unneeded"):
        setattr(EpochLog, name, nothing)
    EpochLog.propose = agreed  # type: ignore[method-assign]


def take_the_time(notes: Path) -> None:
    """Note how long each call of the log takes; by a line in a file, since the reader is another process."""
    for name in ("get", "propose"):
        setattr(EpochLog, name, _timed(getattr(EpochLog, name), name, notes))


def _timed(ask: Callable[..., Any], name: str, notes: Path) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        answer = ask(*arguments)
        took = (time.perf_counter() - began) * 1000
        with notes.open("a") as file:
            file.write(f"{name} {took}\n")
        return answer

    return timed


def late_times(notes: Path, name: str) -> list[float]:
    """How long the last quarter of the calls took, in ms."""
    taken = [float(took) for called, took in (line.split() for line in notes.open()) if called == name]
    return taken[len(taken) * 3 // 4 :]


def main() -> None:
    log, folder, what, argument = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    notes = folder / "notes"
    coordinator = log if log.startswith("zookeeper:") else None
    if log == "none":
        do_without_a_log()
    if what == "small":
        take_the_time(notes)
    # The reader is forked from a zygote that is forked from this process: now, with what was changed above, and
    # before a client of ZooKeeper starts threads.
    os.environ.pop("PYSPARK_PYTHON", None)
    zygote_launcher()
    if what == "small":
        times = small_batch.with_penstock(folder, float(argument), RunSettings(coordinator=coordinator))
        figures = small_batch.figures(times)
        figures |= {f"{name}_ms": statistics.median(late_times(notes, name)) for name in ("get", "propose")}
    else:
        figures = {"seconds": throughput.with_penstock(folder, Path(argument), coordinator=coordinator)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
