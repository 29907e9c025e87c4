"""Measures one workload in a process of its own: `python -m penstock.bench.worker JOB`, where JOB is JSON.

It leads a session, so that everything it starts is found by the session's number. The figures are the last line that it
prints.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.bench.latency import Commit, latency_ms
from penstock.bench.memory import MemorySampler
from penstock.bench.workloads import Workload, workload, write_tables
from penstock.epochs.moments import TICKS_PER_SECOND, processes_of
from penstock.epochs.record import EpochRecord
from penstock.runtime.run import Run, RunSettings
from penstock.spark.session import SessionSettings, default_master, prepare_workers, start_session
from penstock.spark.warm_up import warm_up
from penstock.topology.model import Topology

_WARM_UP_SHARE = 0.5
"""How much of a measured run is done before, unmeasured: so much that the JVM has compiled what there is."""
_SKIPPED_SECONDS = 3.0
"""Of a paced run, at its beginning."""


@dataclass(frozen=True)
class Job:
    """What to measure, and where to put what it writes."""

    workload: str
    folder: str
    tuples: int
    repetitions: int
    rate: float | None
    paced_seconds: float


@dataclass(frozen=True)
class Figures:
    """What was measured of one workload."""

    workload: str
    tuples: int
    seconds: list[float]
    """Of each run without a pace, from the start of its query to its last commit."""
    cpu_seconds: list[float]
    """Of all processes together, in each of these runs."""
    peak_mb: float
    """Of all processes together, at any time."""
    rate: float | None
    latency_ms: list[float]
    """At that rate, by `latency.PERCENTILES`."""


def measure(job: Job) -> Figures:
    folder = Path(job.folder)
    write_tables(folder)
    chosen = workload(job.workload)
    prepare_workers(default_master())
    spark = start_session(SessionSettings(job.workload, default_master(), folder / "logs", os.cpu_count() or 2))
    try:
        with MemorySampler(os.getsid(0)) as sampler:
            warm_up(spark)
            _run(spark, chosen.topology(folder, int(job.tuples * _WARM_UP_SHARE)), folder)
            timed = [_timed(spark, chosen.topology(folder, job.tuples), folder) for _ in range(job.repetitions)]
            waited = [] if job.rate is None else _paced(spark, chosen, folder, job.rate, job.paced_seconds)
    finally:
        spark.stop()
    seconds, cpu_seconds = [one[0] for one in timed], [one[1] for one in timed]
    return Figures(
        job.workload, job.tuples, seconds, cpu_seconds, sampler.peaks()["peak_mb"], job.rate, waited)


def _timed(spark: SparkSession, topology: Topology, folder: Path) -> tuple[float, float]:
    """Seconds, and seconds of processor time."""
    worked = _worked()
    began = time.monotonic()
    ended = _run(spark, topology, folder)[-1][1]
    return ended - began, (_worked() - worked) / TICKS_PER_SECOND


def _worked() -> int:
    return sum(process.worked for process in processes_of(os.getsid(0)))


def _paced(spark: SparkSession, chosen: Workload, folder: Path, rate: float, seconds: float) -> list[float]:
    epochs = _run(spark, chosen.topology(folder, int(rate * seconds), rate), folder)
    # Commits are timed by the clock that never jumps, tuples by that of the source.
    clock = time.time() - time.monotonic()
    commits, first = [], 0
    for record, moment in epochs:
        end = record.ends[chosen.source]
        commits.append(Commit(first, end["row"], end["since"], (moment + clock) * 1000))
        first = end["row"]
    return latency_ms(commits, rate, int(_SKIPPED_SECONDS * rate))


def _run(spark: SparkSession, topology: Topology, folder: Path) -> list[tuple[EpochRecord, float]]:
    """To the end, anew; every epoch with the moment of its commit."""
    run = Run(topology, RunSettings(state=folder / "state", fresh=True))
    epochs: list[tuple[EpochRecord, float]] = []
    run.on_commit = lambda record: epochs.append((record, time.monotonic()))
    run.start(spark)
    run.wait()
    return epochs


def main() -> None:
    wanted: dict[str, Any] = json.loads(sys.argv[1])
    found = measure(Job(**wanted))
    sys.stdout.write(json.dumps(asdict(found)) + "\n")


if __name__ == "__main__":
    main()
