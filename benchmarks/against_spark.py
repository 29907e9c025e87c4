"""Penstock against the same job written by hand in PySpark, in one run, as ratios.

    python benchmarks/against_spark.py [small-batch] [throughput] [first-result] [--megabytes 1000] [--repeat 3]

Every job runs in a process of its own, ours and theirs in turn, so that the noise of the machine hits all
alike; the figures are medians. `tuned` is the hand-written job with Penstock's Spark settings, `default`
the one with Spark's own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
JOBS = HERE / "jobs"
CONTESTANTS = ("penstock", "tuned", "default")


def measure(job: str, contestant: str, folder: Path, *arguments: str) -> dict[str, float]:
    """Run one job in a fresh process; it prints its figures as the last line, in JSON."""
    command = [sys.executable, str(JOBS / f"{job}.py"), contestant, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=os.environ, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def compare(job: str, repeat: int, *arguments: str) -> None:
    collected: dict[str, list[dict[str, float]]] = {name: [] for name in CONTESTANTS}
    for turn in range(repeat):
        for contestant in CONTESTANTS:
            with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
                collected[contestant].append(measure(job, contestant, Path(folder), *arguments))
            print(f"  {job} {turn + 1}/{repeat} {contestant}: {collected[contestant][-1]}", file=sys.stderr)
    medians = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for name, runs in collected.items()
    }
    print(f"\n{job} (median of {repeat})")
    for key in medians["penstock"]:
        ours = medians["penstock"][key]
        shown = "   ".join(f"{name} {medians[name][key]:,.1f}" for name in CONTESTANTS)
        ratios = "   ".join(f"penstock/{name} {ours / medians[name][key]:.2f}" for name in CONTESTANTS[1:])
        print(f"  {key:24} {shown}   →   {ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("jobs", nargs="*", default=["small-batch", "throughput", "first-result"])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-data-") as data:
        for job in options.jobs:
            arguments = []
            if job == "throughput":
                path = Path(data) / "events.jsonl"
                subprocess.run(
                    [sys.executable, str(JOBS / "make_events.py"), str(path), str(options.megabytes)], check=True
                )
                arguments = [str(path)]
            compare(job.replace("-", "_"), options.repeat, *arguments)


if __name__ == "__main__":
    main()
