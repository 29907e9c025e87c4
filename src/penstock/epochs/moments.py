"""The moments of an epoch at which a run can be made to die, for `penstock chaos`.

A run passes `reach(moment, epoch)` at each of them. It does nothing unless the environment variable
`PENSTOCK_CHAOS` holds a plan, which a run's JVM and workers inherit. Then the first deed that is due kills its
victim with `kill -9`, once: the marker file is made before the blow, so that the next start survives.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

VARIABLE = "PENSTOCK_CHAOS"

PROCESSES = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Moment(StrEnum):
    """Where in an epoch a run is."""

    AFTER_OFFSETS = "after-offsets"
    """Spark's offset log names the epoch; its job has not begun."""
    DURING_TASK = "during-task"
    """A Python task is at work on the epoch."""
    BETWEEN_SINKS = "between-sinks"
    """The first sink is committed and the second is not; with one sink, our own record is not."""
    BEFORE_COMMIT_LOG = "before-commit-log"
    """Every sink is committed, and our own record too; Spark's commit log is not written."""


class Victim(StrEnum):
    """Which process of a run dies."""

    DRIVER = "driver"
    """The Python process that the user started."""
    JVM = "jvm"
    WORKER = "worker"
    """A Python process that Spark started."""


@dataclass(frozen=True)
class Deed:
    """Kill `victim` at `moment` of the first epoch from `epoch` on that comes to it."""

    moment: Moment
    epoch: int
    victim: Victim
    marker: str
    """The file that says it is done; see `Done`."""
    armed: str = ""
    """Not before this file is there; empty: from the start."""


@dataclass(frozen=True)
class Done:
    """What a marker file says of its deed."""

    epoch: int
    pid: int
    time: float
    """Seconds since 1970."""


@dataclass(frozen=True)
class Process:
    """A living process, as the operating system lists it."""

    pid: int
    parent: int
    session: int
    name: str
    worked: int
    """The processor time it has used, in the system's ticks."""
    waited_for: int = 0
    """That of its children that are gone, and of theirs, as far as somebody has waited for each."""
    born: int = 0
    """When it was started, in ticks since the system was."""


def reach(moment: Moment, epoch: int) -> None:
    """The run is at `moment` of `epoch`. Costs a look into the environment, and kills only in a chaos run.

    The driver is taken to be the leader of its session, as `penstock chaos` starts it.
    """
    if VARIABLE not in os.environ:
        return
    for deed in read_plan(os.environ[VARIABLE]):
        if deed.moment == moment and epoch >= deed.epoch:
            _do(deed, epoch)


def write_plan(deeds: Sequence[Deed]) -> str:
    """What to put into the environment variable."""
    return json.dumps([asdict(deed) for deed in deeds])


@lru_cache(maxsize=4)
def read_plan(text: str) -> tuple[Deed, ...]:
    return tuple(
        Deed(Moment(item["moment"]), item["epoch"], Victim(item["victim"]), item["marker"], item["armed"])
        for item in json.loads(text)
    )


def read_marker(path: Path) -> Done | None:
    """What was done; None while nothing was, or its note is still being written."""
    try:
        return Done(**json.loads(path.read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def processes_of(session: int) -> list[Process]:
    """Everything alive in a session, also what has left its process group, as Spark's Python daemon does."""
    found = (_process(entry) for entry in PROCESSES.iterdir() if entry.name.isdigit())
    return [process for process in found if process is not None and process.session == session]


def victims(kind: Victim, session: int) -> list[int]:
    """The processes of a session that `kind` can mean; none when there are none now. The busiest first."""
    alive = processes_of(session)
    if kind is Victim.DRIVER:
        return [process.pid for process in alive if process.pid == session]
    if kind is Victim.JVM:
        return [process.pid for process in alive if process.name == "java"]
    python = [process for process in alive if process.name.startswith("python") and process.pid != session]
    # A daemon that forks workers is none itself.
    forking = {process.parent for process in python}
    leaves = [process for process in python if process.pid not in forking]
    return [process.pid for process in sorted(leaves, key=lambda process: process.worked, reverse=True)]


def _do(deed: Deed, epoch: int) -> None:
    if Path(deed.marker).exists() or (deed.armed and not Path(deed.armed).exists()):
        return
    own = os.getpid()
    candidates = victims(deed.victim, os.getsid(0))
    if not candidates:
        return
    pid = own if own in candidates else candidates[0]
    try:
        with Path(deed.marker).open("x") as file:
            json.dump(asdict(Done(epoch, pid, time.time())), file)
    except FileExistsError:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _process(entry: Path) -> Process | None:
    """One entry of the process table; None when it is gone meanwhile, or dead and not yet buried."""
    try:
        text = (entry / "stat").read_text()
    except OSError:
        return None
    # The name stands in brackets and may hold anything, brackets and blanks too.
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    state, parent, session = fields[0], int(fields[1]), int(fields[3])
    worked, waited_for, born = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14]), int(fields[19])
    return None if state in "ZX" else Process(int(entry.name), parent, session, name, worked, waited_for, born)
