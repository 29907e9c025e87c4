"""Penstock against the same job written by hand in PySpark, in one run, as ratios; and what Penstock's own parts cost.

    python benchmarks/against_spark.py [JOB…] [--repeat 3] [--seconds 90] [--megabytes 1000] [--markdown FILE] …

    small-batch    how long a small micro-batch takes, once the JVM is warm
    throughput     a file of JSON lines through filter, select and count, and the memory it takes
    first-result   from the command to the first result of an example
    memory         Penstock's peak memory on larger and larger files
    epoch-log      what the epoch log costs, in SQLite and in ZooKeeper, against no log at all
    backlog        20 million tuples worked off in epochs of 200,000: speed, and memory from beginning to end
    windows        10 million clicks over 100,000 keys in ten-minute windows
    keyed-state    totals per key in custom code, against Spark's transformWithState (which needs pandas and protobuf)

Every job runs in a process of its own, all contestants in turn, so that the noise of the machine hits all
alike; the figures are medians. `tuned` is the hand-written job with Penstock's Spark settings, `default`
the one with Spark's own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pyspark
from job_process import JOBS, Figures, run_job

from penstock.cli.bench_page import FigureTable, Section, write_section
from penstock.spark.java import check_java

CONTESTANTS = ("penstock", "tuned", "default")
EPOCH_TUPLES = 200_000
"""The size of an epoch where memory is measured."""
KEYED_TUPLES, KEYED_EPOCH, KEYED_KEYS = 2_000_000, 100_000, (26, 10_000, 100_000)
WINDOW_KEYS, WINDOW_EPOCH_FILES = 100_000, 4
GOALS_MS = {"sqlite": 10, "zookeeper": 15}

Results = dict[str, Figures]
"""The medians, by contestant."""


def against_spark(job: str, options: argparse.Namespace, *arguments: str, memory: bool = False) -> Results:
    medians = in_turn(
        job, options.repeat, {name: partial(run_job, job, name, *arguments, memory=memory) for name in CONTESTANTS}
    )
    ours = medians["penstock"]
    for key in ours:
        shown = "   ".join(f"{name} {medians[name][key]:,.1f}" for name in CONTESTANTS)
        ratios = "   ".join(f"penstock/{name} {ours[key] / medians[name][key]:.2f}" for name in CONTESTANTS[1:])
        print(f"  {key:24} {shown}   →   {ratios}")
    return medians


def small_batch(options: argparse.Namespace) -> Results:
    return against_spark("small_batch", options, str(options.seconds))


def throughput(options: argparse.Namespace) -> Results:
    with events_of(options.megabytes) as events:
        return against_spark("throughput", options, str(events), memory=True)


def first_result(options: argparse.Namespace) -> Results:
    return against_spark("first_result", options)


def memory(options: argparse.Namespace) -> Results:
    def measured(size: int) -> Figures:
        with events_of(size) as events:
            return run_job("throughput", "penstock", str(events), str(EPOCH_TUPLES), memory=True)

    medians = in_turn("memory", options.repeat, {f"{size} MB": partial(measured, size) for size in options.sizes})
    for name, figures in medians.items():
        print(f"  {name:>8}   " + "   ".join(f"{key} {value:,.1f}" for key, value in figures.items()))
    smallest, largest = (medians[f"{size} MB"]["peak_mb"] for size in (min(options.sizes), max(options.sizes)))
    print(f"  flat: largest/smallest {largest / smallest:.2f}")
    return medians


def epoch_log(options: argparse.Namespace) -> Results:
    with zookeeper() as server, events_of(options.megabytes) as events:
        logs = {"none": "none", "sqlite": "sqlite", "zookeeper": server}
        runs = (("small", str(options.seconds)), ("bounded", str(events)))
        medians = in_turn("epoch_log", options.repeat, {
            f"{what} {name}": partial(run_job, "epoch_log", log, what, argument)
            for what, argument in runs
            for name, log in logs.items()
        })
    for name, figures in medians.items():
        print(f"  {name:18} " + "   ".join(f"{key} {value:,.2f}" for key, value in figures.items()))
    for name, goal in GOALS_MS.items():
        more = medians[f"small {name}"]["median_ms"] - medians["small none"]["median_ms"]
        ratio = medians[f"bounded {name}"]["seconds"] / medians["bounded none"]["seconds"]
        print(f"  {name}: {more:+.1f} ms an epoch (goal: at most {goal}), bounded run × {ratio:.3f} (goal: within 5%)")
    return medians


def backlog(options: argparse.Namespace) -> Results:
    run = partial(run_job, "backlog", "penstock", str(options.tuples), memory=True)
    medians = in_turn("backlog", options.repeat, {"penstock": run})
    figures = medians["penstock"]
    print("  " + "   ".join(f"{key} {value:,.1f}" for key, value in figures.items()))
    print(f"  flat: last third/first third {figures['last_third_peak_mb'] / figures['first_third_peak_mb']:.2f}")
    return medians


def windows(options: argparse.Namespace) -> Results:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-data-") as folder:
        made = [str(JOBS / "make_clicks.py"), folder, str(options.clicks), str(WINDOW_KEYS)]
        subprocess.run([sys.executable, *made], check=True)
        return against_spark("windows", options, folder, str(WINDOW_EPOCH_FILES))


def keyed_state(options: argparse.Namespace) -> Results:
    contestants = ["penstock"]
    missing = [name for name in ("pandas", "google.protobuf") if find_spec(name.split(".")[0]) is None]
    if missing:
        print(f"  keyed-state: transform-with-state is left out, it needs {' and '.join(missing)}", file=sys.stderr)
    else:
        contestants.append("transform-with-state")
    runs = {
        f"{keys} keys {name}": partial(run_job, "keyed_state", name, str(KEYED_TUPLES), str(keys), str(KEYED_EPOCH))
        for keys in KEYED_KEYS
        for name in contestants
    }
    medians = in_turn("keyed-state", options.repeat, runs)
    for name, figures in medians.items():
        print(f"  {name:32} {figures['tuples_per_second']:>10,.0f} tuples/s in epochs of {KEYED_EPOCH:,}")
    return medians


BENCHMARKS: dict[str, Callable[[argparse.Namespace], Results]] = {
    "small-batch": small_batch,
    "throughput": throughput,
    "first-result": first_result,
    "memory": memory,
    "epoch-log": epoch_log,
    "backlog": backlog,
    "windows": windows,
    "keyed-state": keyed_state,
}


HEADINGS = {
    "small-batch": "A small epoch",
    "throughput": "A large file",
    "first-result": "The first result",
    "memory": "Memory",
    "epoch-log": "The epoch log",
    "backlog": "A backlog",
    "windows": "Windows",
    "keyed-state": "Keyed state",
}
"""Where each has its section in a page of docs."""


def in_turn(title: str, repeat: int, contestants: dict[str, Callable[[], Figures]]) -> Results:
    """Run each contestant once, then each again; the median of each figure."""
    collected: dict[str, list[Figures]] = {name: [] for name in contestants}
    for turn in range(repeat):
        for name, run in contestants.items():
            collected[name].append(run())
            print(f"  {title} {turn + 1}/{repeat} {name}: {collected[name][-1]}", file=sys.stderr, flush=True)
    print(f"\n{title} (median of {repeat})", flush=True)
    return {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for name, runs in collected.items()
    }


@contextmanager
def events_of(megabytes: int) -> Iterator[Path]:
    """A file of so many megabytes of JSON lines, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-data-") as folder:
        path = Path(folder) / "events.jsonl"
        subprocess.run([sys.executable, str(JOBS / "make_events.py"), str(path), str(megabytes)], check=True)
        yield path


@contextmanager
def zookeeper() -> Iterator[str]:
    """The address of a real server on loopback, gone afterwards."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.servers.zookeeper import zookeeper_server

    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-zookeeper-") as folder,
        zookeeper_server(Path(folder) / "server") as server,
    ):
        yield f"zookeeper://{server.hosts}/bench"


def table_of(job: str, results: Results) -> FigureTable:
    """A line for each contestant, with how many times the figures of the first one its own are."""
    first, *_ = results.values()
    keys = list(dict.fromkeys(key for figures in results.values() for key in figures))

    def cell(figures: Figures, key: str) -> str:
        if key not in figures:
            return ""
        ratio = "" if figures is first or not first.get(key) else f" (×{figures[key] / first[key]:.2f})"
        return f"{figures[key]:,.1f}{ratio}"

    rows = [[name, *(cell(figures, key) for key in keys)] for name, figures in results.items()]
    return FigureTable([job, *(key.replace("_", " ") for key in keys)], rows)


def machine() -> dict[str, str | int | None]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "java": check_java().version,
        "spark": pyspark.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="all by default")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=90.0, help="how long small batches are run")
    parser.add_argument("--megabytes", type=int, default=1000, help="the file of throughput and epoch-log")
    parser.add_argument(
        "--sizes", type=lambda text: [int(size) for size in text.split(",")], default=[250, 500, 1000, 2000],
        help="the files of memory, in megabytes: 250,500,1000,2000",
    )
    parser.add_argument("--tuples", type=int, default=20_000_000, help="the backlog")
    parser.add_argument("--clicks", type=int, default=10_000_000, help="the tuples of windows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    parser.add_argument("--markdown", type=Path, metavar="FILE",
                        help="write a table of each job for a page of docs, into its section where there is one")
    options = parser.parse_args()
    if unknown := set(options.jobs) - set(BENCHMARKS):
        parser.error(f"no such job: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    results: dict[str, Results] = {}
    for job in options.jobs or BENCHMARKS:
        results[job] = BENCHMARKS[job](options)
        if options.json is not None:
            figures = {"machine": machine(), "repeat": options.repeat, "jobs": results}
            options.json.write_text(json.dumps(figures, indent=2) + "\n")
        if options.markdown is not None:
            text = table_of(job, results[job]).as_markdown([f"medians of {options.repeat}"])
            write_section(options.markdown, Section(job, HEADINGS[job]), text)


if __name__ == "__main__":
    main()
