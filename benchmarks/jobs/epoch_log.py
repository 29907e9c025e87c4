"""What the epoch log costs: the same run with a log, and with none at all.

`epoch_log.py LOG FOLDER small SECONDS` or `epoch_log.py LOG FOLDER bounded FILE`, where LOG is `sqlite`,
`zookeeper://host:port/root` or `none`.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path

import small_batch
import throughput

from penstock.runtime.run import RunSettings

SITE = Path(__file__).parent / "epoch_log_site"


def start_again_with(log: str, notes: Path | None) -> None:
    """Become the same program, in which every process is changed when it starts; see `epoch_log_site`."""
    os.environ.pop("PYSPARK_PYTHON", None)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ["BENCH_LOG"] = log
    if notes is not None:
        os.environ["BENCH_NOTES"] = str(notes)
    os.execv(sys.executable, [sys.executable, *sys.argv])


def late_times(notes: Path, name: str) -> list[float]:
    """How long the last quarter of the calls took, in ms."""
    taken = [float(took) for called, took in (line.split() for line in notes.open()) if called == name]
    return taken[len(taken) * 3 // 4 :]


def main() -> None:
    log, folder, what, argument = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    notes = folder / "notes" if what == "small" else None
    if "BENCH_LOG" not in os.environ:
        start_again_with(log, notes)
    # A root of its own for every run: no run goes on from what another has agreed.
    coordinator = f"{log}/{folder.name}" if log.startswith("zookeeper:") else None
    if notes is not None:
        times = small_batch.with_penstock(folder, float(argument), RunSettings(coordinator=coordinator))
        figures = small_batch.figures(times)
        figures |= {f"{name}_ms": statistics.median(late_times(notes, name)) for name in ("get", "propose")}
    else:
        figures = {"seconds": throughput.with_penstock(folder, Path(argument), coordinator=coordinator)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
