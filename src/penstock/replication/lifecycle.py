"""What becomes of a replica: what is seen of it goes in, what to do comes out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MOST_FAILURES = 5
"""So many failures in a row, and never safe between them: it is parked, with its reason."""
_ALMOST_DONE_SECONDS = 0.5
"""More than one epoch behind the first is still safe if what is missing takes no longer than this."""
_WARM_SECONDS = 60.0
"""One that takes long for an epoch so long after its first is not cold: it is slow."""
START_PATIENCE_SECONDS = 180.0
"""How long a start may take until the first epoch is done."""
_IDLE_SECONDS, _IDLE_INTERVALS = 10.0, 3.0
"""How long there must have been nothing to do: more than a pause between two epochs."""
STALL_SECONDS = 10.0
_STALL_TIMES = 4.0
"""A replica is stuck when an epoch takes it so many times longer than the first one's longest."""


class Phase(StrEnum):
    """How a replica is."""

    DOWN = "down"
    STARTING = "starting"
    RECOVERING = "recovering"
    SAFE = "safe"
    FROZEN = "frozen"
    PARKED = "parked"
    ENDED = "ended"


class Action(StrEnum):
    """What to do with a replica."""

    NOTHING = "nothing"
    START = "start"
    KILL = "kill"
    PARK = "park"


@dataclass(frozen=True)
class Sight:
    """What is seen of one replica. Times are seconds on one clock."""

    alive: bool = False
    """Its process is there."""
    seen: bool = False
    """Since its start it has given a sign of life."""
    registered: bool = False
    """It gives signs of life now."""
    running: bool = False
    """Since its start it has said how far it is: it waits for epochs, or works on one."""
    ended: bool = False
    """It has come to the end of the input."""
    parked: bool = False
    frozen: bool = False
    """It was ordered to begin no further epoch."""
    idle: int | None = None
    """The epoch after which it has had nothing to do for a while."""
    changing: bool = False
    """It changes its state, and does no epoch meanwhile."""
    epoch: int = 0
    """The last epoch it has done; 0 since its start none."""
    took: float = 0.0
    """Seconds that epoch took it, once Spark had handed it over; 0 when nobody knows."""
    whole: float = 0.0
    """The same all in all: from its cut, or the end of the one before it."""
    caught_up: bool = False
    """Since its start it has once caught up with its siblings, and it may be two epochs behind; see `may_be_late`."""
    cold: bool = False
    """It has done its first epochs, and would be late with the next if it had to go on alone."""
    started: float = 0.0
    moved: float = 0.0
    """When it last did an epoch."""
    passed: float | None = None
    """Since when a sibling has done an epoch that it has not; None while none has."""
    failures: int = 0
    """How often in a row it ended before it was safe."""

    @property
    def reached(self) -> int:
        """The last epoch that it has, whoever did it; 0 when nobody knows."""
        return self.epoch or self.idle or 0


@dataclass(frozen=True)
class Head:
    """The replica that is furthest."""

    epoch: int = 0
    moved: float = 0.0
    took: float = 0.0
    """The longest that an epoch lately took it. Not how far they were apart: there may have been none to do."""


def phase_of(sight: Sight, head: Head) -> Phase:
    if sight.ended:
        return Phase.ENDED
    if sight.parked:
        return Phase.PARKED
    if not sight.alive:
        return Phase.DOWN
    if sight.frozen:
        return Phase.FROZEN
    if sight.changing:
        return Phase.RECOVERING
    if not sight.epoch:
        return Phase.SAFE if waits_at_head(sight.idle, head.epoch) else Phase.STARTING
    if not is_abreast(head.epoch - sight.epoch, sight.whole, sight.caught_up):
        return Phase.RECOVERING
    return Phase.STARTING if sight.cold else Phase.SAFE


def is_abreast(behind: int, whole: float, caught_up: bool) -> bool:
    """Whether one that is so many epochs behind, and takes so many seconds for one, could go on alone unnoticed.

    One epoch behind, it is in the middle of what the first has just done. One that has only come back is cold, takes
    long for an epoch, and two of them would be a gap that people see; one that has caught up before is not.
    """
    return behind <= (2 if caught_up else 1) or 0 < behind * whole <= _ALMOST_DONE_SECONDS


def waits_at_head(idle: int | None, head: int) -> bool:
    """Whether one that has done no epoch since its start has caught up: there is none to do, perhaps for hours."""
    return idle is not None and idle >= head - 1


def idle_seconds(interval: float) -> float:
    """How long one must have had nothing to do to be called idle, where epochs are so many seconds apart."""
    return max(_IDLE_SECONDS, _IDLE_INTERVALS * interval)


def may_be_late(whole: float, interval: float) -> bool:
    """Whether one that has caught up may be two epochs behind for a moment; both in seconds.

    Left alone, it does those two and the next within the time that two are apart.
    """
    return 3 * whole <= 2 * max(interval, _ALMOST_DONE_SECONDS)


def is_cold(whole: float, interval: float, since_first: float) -> bool:
    """Whether one that has just started still takes longer for an epoch than they are apart; all in seconds.

    Java compiles what it runs in its first half minute: an epoch takes ten times as long as later. `whole` is that of
    the slowest of several: see `Warmth`.
    """
    return whole > max(interval, _ALMOST_DONE_SECONDS) and since_first < _WARM_SECONDS


def decide(sight: Sight, head: Head, now: float) -> Action:
    """What to do now. A replica that is killed is seen to be down next time, and started."""
    if sight.ended or sight.parked:
        return Action.NOTHING
    if not sight.alive:
        return Action.PARK if sight.failures >= MOST_FAILURES else Action.START
    if sight.seen and not sight.registered:
        return Action.KILL
    if sight.frozen or sight.changing:
        # It does nothing, and nobody knows for how long; only without a sign of life it is gone.
        return Action.NOTHING
    if not sight.epoch:
        # Where no epoch was done since it started, there may be none to do.
        waits = sight.running and not (head.epoch and head.moved > sight.started)
        return Action.KILL if not waits and now - sight.started > START_PATIENCE_SECONDS else Action.NOTHING
    return Action.KILL if _is_stuck(sight, head, now) else Action.NOTHING


def _is_stuck(sight: Sight, head: Head, now: float) -> bool:
    """Whether its siblings have gone on without it for longer than slowness explains."""
    if sight.passed is None or head.moved <= sight.moved:
        return False
    # Before the first was done with it, there may have been nothing to do for hours.
    return now - max(sight.moved, sight.passed) > max(STALL_SECONDS, _STALL_TIMES * head.took)


def safety(phases: list[Phase], behind: int) -> str:
    """One line on all replicas: `2/2 safe`, or `1/2 safe, recovering, 340 epochs behind`."""
    counted = [phase for phase in phases if phase is not Phase.ENDED]
    safe = sum(phase is Phase.SAFE for phase in counted)
    line = f"{safe}/{len(counted)} safe" if counted else "ended"
    others = [phase for phase in counted if phase is not Phase.SAFE]
    if others:
        line += ", " + ", ".join(dict.fromkeys(others))
    return f"{line}, {behind:,} epochs behind" if Phase.RECOVERING in others else line
