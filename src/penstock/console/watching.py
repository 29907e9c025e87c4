"""What a master knows of all topologies: as they are now, and as they were in the last minutes.

Every candidate watches, whether it leads or not, so that one that takes over shows the same at once. What has happened
is in the coordinator: all tell the same.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.console.desired import Desired, Wanted
from penstock.console.event_log import ENTRY, EventLog
from penstock.console.events import Event, events_between
from penstock.console.nodes import Node, Nodes
from penstock.console.seen import SILENT_SECONDS, Hearing, merged
from penstock.console.timeline import Timeline
from penstock.coordination.base import Coordinator
from penstock.errors import CoordinationError

LOOK_SECONDS = 1.0
"""While nobody asks."""
RECENT_SECONDS = 0.25
"""Whoever asks is told nothing that a look could make newer by more than this."""
_POINT_SECONDS = 0.5
POINTS_KEPT = 240
"""Two minutes: each look sends them to every page."""
_RATE_SECONDS = 2.0
"""Over how long tuples are counted for a rate."""


@dataclass(frozen=True)
class Point:
    """One moment of a topology."""

    time: float
    epoch: int
    lag: int
    tuples: Mapping[str, int]
    """By node of the graph, how many tuples have left it since the start."""
    rates: Mapping[str, float]
    """By node of the graph, how many a second."""
    latency_ms: float
    """About how old tuples were when they were delivered."""
    first: Mapping[str, int] = field(default_factory=dict)
    """By replica, how many epochs it was the first to deliver."""
    teller: str = ""
    """The node that has said so."""
    told: float = 0.0
    """When, by that node's clock, which means nothing to others."""
    at_work: float = 0.0
    """For which share of the last seconds it was at work."""
    epoch_ms: float = 0.0
    """How long the last epoch took."""


@dataclass
class Watched:
    """One topology."""

    wanted: Wanted
    seen: dict[str, Any] | None = None
    looked: float = 0.0
    """When somebody last looked who could see; as `heard`, by a clock that stands still while nobody can."""
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=POINTS_KEPT))
    timeline: Timeline = field(default_factory=Timeline)

    @property
    def away(self) -> bool:
        """Whether nobody has said anything of it lately, although somebody could hear it: while the coordinator is
        away, everybody is silent."""
        return self.seen is not None and self.looked - self.seen["heard"] > SILENT_SECONDS

    @property
    def rates(self) -> Mapping[str, float]:
        return self.points[-1].rates if self.points else {}


class Watching:
    """Looks at everything, again and again, and when somebody asks; safe for threads."""

    def __init__(self, coordinator: Coordinator, clock: Callable[[], float] = time.monotonic) -> None:
        self._desired = Desired(coordinator)
        self._nodes = Nodes(coordinator)
        self._clock = clock
        self._hearing = Hearing()
        self._lock = threading.Lock()
        self._watched: dict[str, Watched] = {}
        self._coordinator = coordinator
        self._log = EventLog()
        self._log_in_use = threading.Lock()
        """By one at a time who reads or writes what all masters share; taken before the other lock."""
        self._leads = False
        self._changed = threading.Condition(self._lock)
        self._round = 0
        self._alive: dict[str, Node] = {}
        self.reachable = False
        """Whether the coordinator answered the last time."""
        self.trouble = ""
        """Why it did not."""
        self.odd: frozenset[str] = frozenset()
        """What was wrong with reports at the last look."""
        self._looking = threading.Lock()
        self._looked = float("-inf")
        self._listened = 0.0
        """For how long it has listened: the time between two looks counts where both could see."""
        self._heard_at: float | None = None
        """When the last look could see, if that was the last one."""

    def look_unless_recent(self, seconds: float = RECENT_SECONDS) -> None:
        """As `look`, but for what somebody has looked at within so many seconds."""
        with self._looking:
            if self._clock() - self._looked >= seconds:
                self._look_and_note()

    def look(self) -> None:
        """One look; raises CoordinationError when the coordinator is away."""
        with self._looking:
            self._look_and_note()

    def _look_and_note(self) -> None:
        try:
            self._look()
        finally:
            # At its end, also where it failed: those who waited for it do not look once more, one after the other.
            self._looked = self._clock()

    def _look(self) -> None:
        try:
            self._read_events()
            wanted = {each.name: each for each in self._desired.all()}
            told = self._nodes.told()
            alive, now = self._nodes.alive(), self._clock()
        except CoordinationError as error:
            self.reachable, self.trouble, self._heard_at = False, str(error), None
            raise
        # What is told first after an outage is news, too.
        self._listened += RECENT_SECONDS if self._heard_at is None else now - self._heard_at
        self._heard_at = now
        heard = self._hearing.hear(told, self._listened)
        seen = {name: merged(told.get(name, {}), heard.get(name, {})) for name in wanted}
        self.reachable = True
        odd = set()
        with self._lock:
            for name in [name for name in self._watched if name not in wanted]:
                removed = events_between(name, self._watched.pop(name).seen, None, time.time())
                self._log.hold(removed, self._clock())
            for name, each in wanted.items():
                try:
                    self._take_in(name, each, seen[name])
                except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                    # A report that makes no sense is of one topology, and hides no other.
                    odd.add(f"what is told of '{name}' makes no sense: {type(error).__name__}: {error}")
            self.odd = frozenset(odd)
            self._alive = alive
            self._round += 1
            self._changed.notify_all()

    def all(self) -> list[Watched]:
        with self._lock:
            return [self._watched[name] for name in sorted(self._watched)]

    def get(self, name: str) -> Watched | None:
        with self._lock:
            return self._watched.get(name)

    def wanted(self) -> list[Wanted]:
        """What is wanted, as it was at the last look."""
        with self._lock:
            return [watched.wanted for watched in self._watched.values()]

    def lost(self, wanted: Wanted) -> set[str]:
        """The replicas that do not run, as those nodes see it that look at the same topology now."""
        with self._lock:
            watched = self._watched.get(wanted.name)
        seen = None if watched is None or watched.away else watched.seen
        if not wanted.spread or seen is None or not seen["replicas"]:
            return set()
        running = {view["name"] for view in seen["replicas"] if view["phase"] not in ("down", "parked")}
        return set(wanted.nodes) - running

    @property
    def has_looked(self) -> bool:
        """Whether a look has succeeded since the start: before, what is not known here may be there all the same."""
        with self._lock:
            return self._round > 0

    def nodes(self) -> dict[str, Node]:
        with self._lock:
            return dict(self._alive)

    def events(self, topology: str | None = None, last: int = 100) -> list[Event]:
        """The newest, the oldest of them first."""
        with self._lock:
            chosen = [event for event in self._log.events(self._leads) if topology in (None, event.topology)]
        return chosen[-last:]

    def note(self, event: Event) -> None:
        """Tell what somebody has commanded; it is written down at once, or when the coordinator is there again."""
        with self._lock:
            self._log.add(event, self._clock())
        with contextlib.suppress(CoordinationError):
            self.write_events(leading=True)

    def write_events(self, leading: bool) -> None:
        """Who leads writes down what has happened, if anything has; raises CoordinationError."""
        with self._lock:
            self._leads = leading
            self._log.forget(self._clock(), leading)
        with self._log_in_use:
            while leading:
                with self._lock:
                    draft = self._log.draft()
                if draft is None:
                    return
                if draft.expected is None:
                    written = self._coordinator.create_if_absent(ENTRY, draft.text) == draft.text
                else:
                    written = self._coordinator.replace(ENTRY, draft.expected, draft.text)
                if written:
                    with self._lock:
                        self._log.written(draft)
                else:
                    # The leader before was not quite gone.
                    self._take_in_events()

    def _read_events(self) -> None:
        with self._log_in_use:
            self._take_in_events()

    def _take_in_events(self) -> None:
        text = self._coordinator.get(ENTRY)
        with self._lock:
            self._log.take_in(text, self._clock())

    def await_change(self, known: int, seconds: float) -> int:
        """The number of the last look; waits for a later one than `known`, but no longer than so."""
        with self._lock:
            self._changed.wait_for(lambda: self._round > known, seconds)
            return self._round

    def _take_in(self, name: str, wanted: Wanted, seen: dict[str, Any] | None) -> None:
        watched = self._watched.setdefault(name, Watched(wanted))
        watched.wanted, watched.looked = wanted, self._listened
        if seen is None or (watched.seen is not None and seen["heard"] <= watched.seen["heard"]):
            return
        now = time.time()
        # First, for it shows what makes no sense before anything is made of it.
        point = point_after(watched.points, seen, now)
        found = [*events_between(name, watched.seen, seen, now), *watched.timeline.take(name, seen, now)]
        self._log.hold(found, self._clock(), first_look=watched.seen is None)
        watched.seen = seen
        if point is not None:
            if len(watched.points) > 1 and point.time - watched.points[-2].time < _POINT_SECONDS:
                watched.points.pop()
            watched.points.append(point)


def point_after(points: Sequence[Point], seen: Mapping[str, Any], now: float) -> Point | None:
    """The moment that `seen` tells of; None when it tells of none. Rates are since one some seconds ago."""
    progress = seen.get("progress")
    if not progress:
        return None
    before = _point_before(points, seen["teller"], seen["told"])
    tuples = {name: count for name, count in progress["tuples"].items() if count is not None}
    tuples |= progress.get("ports", {})
    tuples |= {f"sink:{name}": count for name, count in progress["delivered"].items()}
    if before is not None:
        took = seen["told"] - before.told
        # After a restart everything is counted from zero.
        rates = {name: max(count - before.tuples.get(name, 0), 0) / took for name, count in tuples.items()}
    else:
        last = points[-1].rates if points else {}
        rates = {name: last.get(name, 0.0) for name in tuples}
    first = {view["name"]: view["first"] for view in seen["replicas"]}
    return Point(now, seen["epoch"], progress["lag"], tuples, rates, progress.get("age_ms", 0.0), first,
                 seen["teller"], seen["told"], progress.get("at_work", 0.0), progress.get("epoch_ms", 0.0))  # fmt: skip


def _point_before(points: Sequence[Point], teller: str, told: float) -> Point | None:
    """What the same node said some seconds before, or as long ago as there is: two clocks cannot be compared."""
    found = None
    for point in reversed(points):
        if point.teller != teller:
            continue
        if point.told >= told:
            # Its clock was set back.
            break
        found = point
        if told - point.told >= _RATE_SECONDS:
            break
    return found
