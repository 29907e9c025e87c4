"""Penstock beside other stream processors, on this machine and in one run, as ratios.

    python benchmarks/peers.py [--quick] [--job JOB]… [--peer PEER]… [--repeat 3] [--json FILE] [--markdown FILE] …

Everybody does the same jobs, each written as the peer's own documentation advises:

    stateless        W1: three stages, tuples of 256 bytes
    word-count       W2: 26 words of 256 bytes, counted, with durable state
    function         W3: one Python function, called for every tuple
    batch-function   W3: the same, called for every Arrow batch, where there is such a thing
    json             W4: files of JSON lines, parsed, filtered, counted per key
    recovery         a word count is killed (kill -9) in the middle and started again at once

and everybody writes the results to disk, where they are checked: a wrong result is shown as wrong, and has no figure. A
peer that cannot be installed, or fails, is shown with the reason.

    penstock         this repository
    pyflink          Flink SQL in a local mini cluster, mini-batches and checkpoints; Python only where the job has some
    bytewax          two processes; word counts with recovery
    pathway          two threads; word counts with persistence
    pyspark          the same by hand, with Spark's own settings

Each peer has a virtual environment of its own, made once, in the user's cache. Everybody has two tasks, threads or
processes, and every JVM 1 GiB. They run in turn, first everybody once, then everybody again, each turn beginning with
another, so that the noise of the machine hits all alike; the figures are medians. Input of the first four jobs is made
in memory by each.

What is timed: from a system that is up, when it is handed the job, until the job has ended and all its results are on
disk. Not timed, for anybody: starting Python, importing, starting a JVM, a session or processes, and installing. A JVM
compiles what it runs often, so those who have one (Penstock, PyFlink, PySpark) have done the same job before in the
same JVM, with a quarter of the input. In `recovery`, with 10,000 tuples a second, everything is timed, as whoever waits
for output waits for all of it: from the last result before the kill to the first new one after it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from side_by_side.contestants import CONTESTANTS, JOBS, PENSTOCK, RECOVERY
from side_by_side.picture import TITLE, ratios_picture
from side_by_side.table import ratios_table, recovery_table
from side_by_side.telling import Telling
from side_by_side.turns import Origin, Plan, Turns

from penstock.cli.bench_page import Picture, Section, command_line, write_section

MEGABYTES, QUICK_MEGABYTES = 1000, 100
REPEAT = 3
INTERRUPTED = 130
SECTION = Section("peers", "Beside other systems")
RECOVERY_SECTION = Section("peers recovery", "Killed and started again")


def tables(turns: Turns) -> dict[Section, str]:
    """What is known so far; each has a section of its own, for they are rarely measured together."""
    shown = {}
    if turns.runs:
        every = [runs for by_name in turns.runs.values() for runs in by_name.values()]
        shown[SECTION] = f"{ratios_table(turns.results())}\n\n{said_of(every)}{of_earlier_runs(turns, turns.runs)}"
    if turns.recovered:
        said = f"{said_of(turns.recovered.values())}{of_earlier_runs(turns, (RECOVERY,))}"
        shown[RECOVERY_SECTION] = f"{recovery_table(turns.recovered)}\n\n{said}"
    return shown


def said_of(every: Iterable[Sequence[object]]) -> str:
    """Of how many runs the figures are medians; a job that was stopped on the way has fewer than the others."""
    return f"Medians of {' or '.join(map(str, sorted({len(runs) for runs in every})))}."


def of_earlier_runs(turns: Turns, jobs: Collection[str]) -> str:
    """Which jobs were not measured by this run: its date and its command are not theirs."""
    old = [f"{job} ({origin})" for job, origin in turns.earlier.items() if job in jobs]
    return f"\n\nOf earlier runs: {'; '.join(old)}." if old else ""


def figures(turns: Turns, plan: Plan) -> dict[str, Any]:
    """Everything that was measured, for machines to read."""
    now = Origin(f"{datetime.now(UTC):%Y-%m-%d}", command_line(sys.argv))
    measured = [*turns.runs, *([RECOVERY] if turns.recovered else [])]
    return {
        "measured": {job: asdict(turns.earlier.get(job, now)) for job in measured},
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "repeat": plan.repeat,
        "quick": plan.quick,
        "amounts": turns.amounts,
        "runs": {
            job: {name: [asdict(run) for run in runs] for name, runs in by_name.items()}
            for job, by_name in turns.runs.items()
        },
        "recovery": {name: [asdict(one) for one in each] for name, each in turns.recovered.items()},
    }


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = [*(job.name for job in JOBS), RECOVERY]
    peers = [each.name for each in CONTESTANTS if each.name != PENSTOCK]
    made.add_argument("--quick", action="store_true",
                      help="once, with a quarter of the input or less: some fifteen minutes, not more than an hour")
    made.add_argument("--job", action="append", choices=jobs, metavar="JOB", help="only this one; may be repeated")
    made.add_argument("--peer", action="append", choices=peers, metavar="PEER",
                      help="only this one beside Penstock; may be repeated")
    made.add_argument("--repeat", type=int, metavar="N", help=f"how often everybody runs: {REPEAT}, or 1 with --quick")
    made.add_argument("--megabytes", type=int, metavar="N",
                      help=f"of JSON lines: {MEGABYTES}, or {QUICK_MEGABYTES} with --quick")
    made.add_argument("--scale", type=float, default=1.0, metavar="X",
                      help="so many times the tuples of the jobs that make them up: 1")
    made.add_argument("--json", type=Path, metavar="FILE", help="write every single figure there")
    made.add_argument("--beside", type=Path, metavar="FILE",
                      help="what an earlier run wrote with --json: it need not all be measured at once")
    made.add_argument("--svg", type=Path, metavar="FOLDER", help="draw the ratios, as peers.svg")
    made.add_argument("--markdown", type=Path, metavar="FILE",
                      help="write the tables for a page of docs, into its section where there is one")
    made.set_defaults(all_jobs=jobs, all_peers=peers)
    return made


def plan_of(options: argparse.Namespace) -> Plan:
    names = {PENSTOCK, *(options.peer or options.all_peers)}
    return Plan(
        [each for each in CONTESTANTS if each.name in names], options.job or options.all_jobs,
        options.repeat or (1 if options.quick else REPEAT), options.quick,
        options.megabytes or (QUICK_MEGABYTES if options.quick else MEGABYTES), options.scale,
    )  # fmt: skip


def main() -> None:
    taking = parser()
    options = taking.parse_args()
    plan = plan_of(options)
    # A plain kill stops the children as Ctrl-C does, and Ctrl-C does it also where a shell has turned it off.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    turns = Turns(plan, Telling())
    if options.beside is not None:
        try:
            turns.remember(json.loads(options.beside.read_text()))
        except OSError as error:
            taking.error(f"--beside {options.beside}: {error.strerror}; give a file that --json has written")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            taking.error(f"--beside {options.beside}: this is not what --json writes ({error!r}): measure anew")
    code = 0
    try:
        for _ in turns.take():
            write_down(turns, plan, options)
    except KeyboardInterrupt:
        print("\nstopped; this is what was measured so far", file=sys.stderr)
        code = INTERRUPTED
        write_down(turns, plan, options)
    print("\n\n".join(tables(turns).values()))
    sys.exit(code)


def write_down(turns: Turns, plan: Plan, options: argparse.Namespace) -> None:
    """What is known so far, wherever it is wanted; a page stays as it is while there is nothing to say."""
    if options.json is not None:
        options.json.write_text(json.dumps(figures(turns, plan), indent=2) + "\n")
    pictures = []
    if options.svg is not None and turns.runs:
        options.svg.mkdir(parents=True, exist_ok=True)
        pictures.append(Picture(options.svg / "peers.svg", TITLE))
        pictures[0].file.write_text(ratios_picture(turns.results()), encoding="utf-8")
    if options.markdown is not None:
        new = {SECTION: turns.runs.keys() - turns.earlier.keys(), RECOVERY_SECTION: {RECOVERY} - turns.earlier.keys()}
        for section, text in tables(turns).items():
            if new[section]:
                write_section(options.markdown, section, f"{text}\n", pictures if section is SECTION else ())


if __name__ == "__main__":
    main()
