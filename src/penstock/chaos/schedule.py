"""What is done to a run, and when: decided beforehand, from a seed. Pure."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from penstock.epochs.moments import Moment, Victim

T = TypeVar("T")

_FREEZE_SECONDS = (1.0, 4.0)
_REPLICA_FREEZE_SECONDS = (1.0, 12.0)
"""Long enough that a frozen replica is taken for dead, and short enough that it wakes up before that."""
_KILLS_PER_INTERRUPTION = 5
"""So many kills come with one freeze and one restart; there is always one of each."""


class Act(StrEnum):
    """What is done to a run."""

    KILL_ALL = "kill -9 of every process"
    """As when the machine loses its power."""
    KILL_DRIVER = "kill -9 of the driver"
    KILL_JVM = "kill -9 of the JVM"
    KILL_WORKER = "kill -9 of a Python worker"
    FREEZE = "freeze"
    """SIGSTOP of every process, and SIGCONT a while later."""
    RESTART = "stop and restart"
    """SIGTERM, as a supervisor stops it."""
    DELETE_COMMIT = "last commit-log entry deleted"
    CORRUPT_OFFSETS = "newest offset-log entry cut short"
    CORRUPT_STATE = "newest state file cut short"
    FILL_DISK = "disk filled"
    KILL_SUPERVISOR = "kill -9 of the supervisor"
    """Of replicas: they must go on without it."""
    RESCALE = "rescale"
    """Not to do harm: the state is divided anew while it runs."""


VICTIMS = {Act.KILL_DRIVER: Victim.DRIVER, Act.KILL_JVM: Victim.JVM, Act.KILL_WORKER: Victim.WORKER}
TAMPERING = (Act.DELETE_COMMIT, Act.CORRUPT_OFFSETS, Act.CORRUPT_STATE)
"""Done to the files of a run that has been killed."""
DEEP = (*TAMPERING, Act.FILL_DISK)

_ANY_TIME = (Act.KILL_ALL, Act.KILL_DRIVER, Act.KILL_JVM, Act.KILL_WORKER)
_DEADLIEST = Moment.BETWEEN_SINKS
"""Where a sink that cannot keep its promise is found out most surely: a single kill comes here."""
_AT_MOMENTS: tuple[tuple[Moment, Sequence[Act]], ...] = (
    (Moment.AFTER_OFFSETS, (Act.KILL_DRIVER, Act.KILL_JVM)),
    (Moment.DURING_TASK, (Act.KILL_WORKER, Act.KILL_JVM, Act.KILL_DRIVER)),
    (Moment.BETWEEN_SINKS, (Act.KILL_DRIVER,)),
    (Moment.BEFORE_COMMIT_LOG, (Act.KILL_DRIVER, Act.KILL_JVM)),
)


@dataclass(frozen=True)
class Disturbance:
    """One thing done to a run."""

    number: int
    """From 1, in the order of the schedule."""
    act: Act
    epoch: int
    """Not before so many epochs are committed; with a moment, in this epoch or the first after it."""
    moment: Moment | None = None
    """The run dies by its own hand exactly there; otherwise it is struck at any time, from outside."""
    into: float = 0.0
    """How far into the next epoch the blow falls, from 0 to 1."""
    seconds: float = 0.0
    """How long a freeze lasts."""
    choice: float = 0.0
    """Which of several workers, from 0 to 1."""
    replica: int = 0
    """Which of several replicas, from 1; 0: the one and only, or whichever comes to the moment first."""
    operator: str = ""
    instances: int = 0
    """What is rescaled, and to how many."""

    def __str__(self) -> str:
        if self.act is Act.RESCALE:
            return f"{self.act} {self.operator}={self.instances}"
        where = f", {self.moment}" if self.moment else f" of replica {self.replica}" if self.replica else ""
        lasting = f" for {self.seconds:.1f} s" if self.act is Act.FREEZE else ""
        return f"{self.act}{where}{lasting}" if self.replica else f"{self.act}{lasting}{where}"


Rescale = tuple[str, int]
"""An operator, and how many instances it is to have."""


def schedule(
    kills: int, seed: int, epochs: int, deep: bool = False, rescales: Sequence[Rescale] = (), replicas: int = 1
) -> list[Disturbance]:
    """`kills` kills, some freezes and restarts, and with `deep` each kind of damage once, in order of epochs.

    Kills at chosen moments and at any time take turns, and no kind comes twice before all have come once. The rescales
    come in their order, spread evenly between the others. Of several replicas one at a time is struck, and instead of
    a restart their supervisor is killed.
    Everything falls before the last epoch, spread evenly; the same arguments give the same schedule.
    """
    chance = random.Random(seed)
    planned: list[tuple[Act, Moment | None]] = []
    less_deadly = chance.sample([moment for moment, _ in _AT_MOMENTS if moment is not _DEADLIEST], len(_AT_MOMENTS) - 1)
    moments, any_time = itertools.cycle([_DEADLIEST, *less_deadly]), _dealt(chance, _ANY_TIME)
    turns = {moment: _dealt(chance, acts) for moment, acts in _AT_MOMENTS}
    for number in range(kills):
        moment = next(moments) if number % 2 == 0 else None
        planned.append((next(turns[moment]) if moment else next(any_time), moment))
    interruptions = _interruptions(kills)
    planned += [(Act.FREEZE, None), (Act.RESTART if replicas == 1 else Act.KILL_SUPERVISOR, None)] * interruptions
    chance.shuffle(planned)
    if deep:
        for act in DEEP:
            planned.insert(chance.randint(0, len(planned)), (act, None))
    others = len(planned)
    for number in range(len(rescales)):
        planned.insert((number + 1) * others // (len(rescales) + 1) + number, (Act.RESCALE, None))
    wanted = iter(rescales)
    freezes = _FREEZE_SECONDS if replicas == 1 else _REPLICA_FREEZE_SECONDS
    return [
        Disturbance(
            number + 1,
            act,
            _epoch(chance, number, len(planned), epochs),
            moment,
            0.0 if moment else round(chance.random(), 3),
            round(chance.uniform(*freezes), 1) if act is Act.FREEZE else 0.0,
            round(chance.random(), 3),
            chance.randint(1, replicas) if replicas > 1 and not moment and act is not Act.KILL_SUPERVISOR else 0,
            *(next(wanted) if act is Act.RESCALE else ()),
        )
        for number, (act, moment) in enumerate(planned)
    ]


def blows_with(kills: int) -> int:
    """How many disturbances so many kills come to, with the freezes and restarts between them."""
    return kills + 2 * _interruptions(kills)


def _interruptions(kills: int) -> int:
    return max(1, kills // _KILLS_PER_INTERRUPTION)


def _epoch(chance: random.Random, number: int, of: int, epochs: int) -> int:
    """An epoch in the `number`-th of equal parts, so that the order of the schedule is that of the epochs."""
    # Small epochs go by faster than a blow falls: the last ones are left in peace, so that none comes too late.
    usable = max(0, epochs - max(2, epochs // 6))
    first, last = (usable * part // of for part in (number, number + 1))
    return 1 + (chance.randrange(first, last) if first < last else first) if epochs > 1 else 0


def _dealt(chance: random.Random, kinds: Sequence[T]) -> Iterator[T]:
    """Each kind once in a random order, then again."""
    while True:
        yield from chance.sample(kinds, len(kinds))
