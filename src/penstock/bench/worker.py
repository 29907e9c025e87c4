"""Measures one workload in a process of its own: `python -m penstock.bench.worker JOB`, where JOB is JSON.

It leads a session, so that everything it starts is found by the session's number. The figures are the last line that it
prints.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.bench.figures import Figures
from penstock.bench.latency import Commit, latency_ms
from penstock.bench.measuring import Job, Pace
from penstock.bench.sampling import ProcessSampler
from penstock.bench.workloads import Workload, workload, write_tables
from penstock.epochs.record import EpochRecord
from penstock.runtime.run import Run, RunSettings
from penstock.spark.session import SessionSettings, default_master, prepare_workers, start_session
from penstock.spark.warm_up import warm_up
from penstock.topology.model import Topology

_WARM_UP_SHARE = 0.5
"""How much of a measured run is done before, unmeasured: so much that the JVM has compiled what there is."""
_SKIPPED_SECONDS = 3.0
"""Of a paced run, at its beginning; at most half of it."""


def measure(job: Job) -> Figures:
    folder = Path(job.folder)
    write_tables(folder)
    chosen = workload(job.workload)
    prepare_workers(default_master())
    spark = start_session(SessionSettings(job.workload, default_master(), folder / "logs", os.cpu_count() or 2))
    try:
        with ProcessSampler(os.getsid(0)) as sampler:
            warm_up(spark)
            _run(spark, chosen.topology(folder, int(job.tuples * _WARM_UP_SHARE)), folder)
            timed = [
                _timed(spark, chosen.topology(folder, job.tuples), folder, sampler) for _ in range(job.repetitions)
            ]
            waited = [] if job.pace is None else _paced_runs(spark, chosen, folder, job.pace)
    finally:
        spark.stop()
    seconds, cpu_seconds = [one[0] for one in timed], [one[1] for one in timed]
    rate = None if job.pace is None else job.pace.rate
    return Figures(job.workload, job.tuples, seconds, cpu_seconds, sampler.peaks()["peak_mb"], rate, waited)


def _timed(spark: SparkSession, topology: Topology, folder: Path, sampler: ProcessSampler) -> tuple[float, float]:
    """Seconds, and seconds of processor time."""
    worked = sampler.worked_seconds()
    began = time.monotonic()
    ended = _run(spark, topology, folder)[-1][1]
    return ended - began, sampler.worked_seconds() - worked


def _paced_runs(spark: SparkSession, chosen: Workload, folder: Path, pace: Pace) -> list[list[float]]:
    """The percentiles of each run, after one that warms up what small epochs need."""
    if pace.warm_up:
        _run(spark, chosen.topology(folder, int(pace.rate * pace.warm_up), pace.rate), folder)
    return [_paced(spark, chosen, folder, pace) for _ in range(pace.runs)]


def _paced(spark: SparkSession, chosen: Workload, folder: Path, pace: Pace) -> list[float]:
    epochs = _run(spark, chosen.topology(folder, int(pace.rate * pace.seconds), pace.rate), folder)
    # Commits are timed by the clock that never jumps, tuples by that of the source.
    clock = time.time() - time.monotonic()
    commits, first = [], 0
    for record, moment in epochs:
        end = record.ends[chosen.source]
        commits.append(Commit(first, end["row"], end["since"], (moment + clock) * 1000))
        first = end["row"]
    return latency_ms(commits, pace.rate, int(pace.rate * min(_SKIPPED_SECONDS, pace.seconds / 2)))


def _run(spark: SparkSession, topology: Topology, folder: Path) -> list[tuple[EpochRecord, float]]:
    """To the end, anew; every epoch with the moment of its commit."""
    run = Run(topology, RunSettings(state=folder / "state", fresh=True))
    epochs: list[tuple[EpochRecord, float]] = []
    run.on_commit = lambda record: epochs.append((record, time.monotonic()))
    run.start(spark)
    run.wait()
    return epochs


def main() -> None:
    sys.stdout.write(measure(Job.from_json(sys.argv[1])).as_json() + "\n")


if __name__ == "__main__":
    main()
