"""What a node does next about a topology. Pure: it is done in `node_supervisor`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from penstock.console.desired import Wanted
from penstock.console.home import Begun

MOST_FAILURES = 5
"""A topology that ends so often with an error, without an epoch in between, is not started again."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class Act(StrEnum):
    NOTHING = "nothing"
    START = "start"
    RENEW = "renew"
    """Put another version in place of the one that runs."""
    STOP = "stop"
    REHOME = "rehome"
    """Watch other replicas than before: those that run go on, whoever watches them."""


class How(StrEnum):
    """How a topology is, in a word."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    ENDED = "ended"
    FAILED = "failed"
    """It is not started again before somebody says so."""


@dataclass(frozen=True)
class There:
    """What a node knows of a topology."""

    begun: Begun = Begun()
    alive: bool = False
    """Whether its supervisor runs."""
    unwatched: bool = False
    """Whether replicas run that nobody watches: the next supervisor finds them, if there is to be one."""
    epoch: int = 0
    ended: bool = False
    """Whether all of its input is done."""
    failures: int = 0
    """How often it ended with an error since it last delivered anything."""
    failed_at: float = 0.0
    refused: bool = False
    """Whether it ended because the topology is wrong: that does not change by itself."""
    stopping: bool = False


def decide(wanted: Wanted, there: There, now: float, here: tuple[str, ...] = ()) -> Act:
    """What to do now; times are in seconds. `here` are this node's replicas, where each has a node of its own."""
    another = is_another(wanted, there.begun)
    if not wanted.goal.runs:
        return Act.STOP if there.unwatched or (there.alive and not there.stopping) else Act.NOTHING
    if there.alive:
        if there.stopping:
            return Act.NOTHING
        begun = there.begun
        if wanted.fresh > begun.fresh or (wanted.file, wanted.sets) != (begun.file, begun.sets):
            # Who watches the replicas starts them with what it was started with itself.
            return Act.STOP
        return Act.RENEW if another else Act.NOTHING if there.begun.here == here else Act.REHOME
    if another or wanted.starts > there.begun.starts:
        return Act.START
    if there.ended or has_failed(there) or now < there.failed_at + pause_after(there.failures):
        return Act.NOTHING
    return Act.START


def is_another(wanted: Wanted, begun: Begun) -> bool:
    """Whether something else is wanted than what was started."""
    return replace(begun_with(wanted, begun.here), starts=begun.starts) != begun


def begun_with(wanted: Wanted, here: tuple[str, ...]) -> Begun:
    """What is noted when it is started on a node, or another version is put in place there."""
    return Begun(wanted.digest, wanted.file, wanted.sets, wanted.fresh, here, wanted.starts)


def has_failed(there: There) -> bool:
    """Whether it is not tried again."""
    return there.refused or there.failures >= MOST_FAILURES


def pause_after(failures: int) -> float:
    """How long to wait before the next start, longer with every failure."""
    return 0.0 if not failures else min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE)


def how_it_is(wanted: Wanted, there: There) -> How:
    if there.alive:
        stopping = there.stopping or not wanted.goal.runs
        return How.STOPPING if stopping else How.RUNNING if there.epoch else How.STARTING
    if there.unwatched and not wanted.goal.runs:
        return How.STOPPING
    if there.ended and not is_another(wanted, there.begun):
        return How.ENDED
    if has_failed(there):
        return How.FAILED
    return How.STARTING if wanted.goal.runs else How.STOPPED
