"""What a master knows of all topologies: as they are now, and as they were in the last minutes.

Every candidate watches, whether it leads or not, so that one that takes over shows the same at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.console.desired import Desired, Wanted
from penstock.console.events import Event, events_between
from penstock.console.nodes import Node, Nodes
from penstock.console.seen import SILENT_SECONDS, merged
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
_EVENTS_KEPT = 500
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
    first: Mapping[str, int] = field(default_factory=dict)
    """By replica, how many epochs it was the first to deliver."""


@dataclass
class Watched:
    """One topology."""

    wanted: Wanted
    seen: dict[str, Any] | None = None
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=POINTS_KEPT))
    timeline: Timeline = field(default_factory=Timeline)

    @property
    def away(self) -> bool:
        """Whether nobody has said anything of it lately."""
        return self.seen is not None and time.time() - self.seen["at"] > SILENT_SECONDS

    @property
    def rates(self) -> Mapping[str, float]:
        return self.points[-1].rates if self.points else {}


class Watching:
    """Looks at everything, again and again, and when somebody asks; safe for threads."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._desired = Desired(coordinator)
        self._nodes = Nodes(coordinator)
        self._lock = threading.Lock()
        self._watched: dict[str, Watched] = {}
        self._events: deque[Event] = deque(maxlen=_EVENTS_KEPT)
        self._changed = threading.Condition(self._lock)
        self._round = 0
        self._alive: dict[str, Node] = {}
        self.reachable = False
        """Whether the coordinator answered the last time."""
        self._looking = threading.Lock()
        self._looked = 0.0

    def look_unless_recent(self, seconds: float = RECENT_SECONDS) -> None:
        """As `look`, but for what somebody has looked at within so many seconds."""
        with self._looking:
            if time.monotonic() - self._looked >= seconds:
                self._look()

    def look(self) -> None:
        """One look; raises CoordinationError when the coordinator is away."""
        with self._looking:
            self._look()

    def _look(self) -> None:
        self._looked = time.monotonic()
        try:
            wanted = {each.name: each for each in self._desired.all()}
            told = self._nodes.told()
            seen = {name: merged(told.get(name, {})) for name in wanted}
            alive = self._nodes.alive()
        except CoordinationError:
            self.reachable = False
            raise
        self.reachable = True
        with self._lock:
            for name in [name for name in self._watched if name not in wanted]:
                self._events.extend(events_between(name, self._watched.pop(name).seen, None))
            for name, each in wanted.items():
                self._take_in(name, each, seen[name])
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
            seen = self._watched[wanted.name].seen if wanted.name in self._watched else None
        if not wanted.spread or seen is None or not seen["replicas"] or time.time() - seen["at"] > SILENT_SECONDS:
            return set()
        running = {view["name"] for view in seen["replicas"] if view["phase"] != "down"}
        return set(wanted.nodes) - running

    def nodes(self) -> dict[str, Node]:
        with self._lock:
            return dict(self._alive)

    def events(self, topology: str | None = None, last: int = 100) -> list[Event]:
        """The newest, the oldest of them first."""
        with self._lock:
            chosen = [event for event in self._events if topology in (None, event.topology)]
        return chosen[-last:]

    def note(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    def await_change(self, known: int, seconds: float) -> int:
        """The number of the last look; waits for a later one than `known`, but no longer than so."""
        with self._lock:
            self._changed.wait_for(lambda: self._round > known, seconds)
            return self._round

    def _take_in(self, name: str, wanted: Wanted, seen: dict[str, Any] | None) -> None:
        watched = self._watched.setdefault(name, Watched(wanted))
        watched.wanted = wanted
        if seen is None or (watched.seen is not None and seen["at"] <= watched.seen["at"]):
            return
        self._events.extend(events_between(name, watched.seen, seen))
        self._events.extend(watched.timeline.take(name, seen))
        watched.seen = seen
        point = point_after(watched.points, seen)
        if point is not None:
            if len(watched.points) > 1 and point.time - watched.points[-2].time < _POINT_SECONDS:
                watched.points.pop()
            watched.points.append(point)


def point_after(points: Sequence[Point], seen: Mapping[str, Any]) -> Point | None:
    """The moment that `seen` tells of; None when it tells of none. Rates are since one some seconds ago."""
    progress = seen.get("progress")
    if not progress:
        return None
    earlier = (point for point in reversed(points) if seen["at"] - point.time >= _RATE_SECONDS)
    before = next(earlier, points[0] if points else None)
    tuples = {name: count for name, count in progress["tuples"].items() if count is not None}
    tuples |= progress.get("ports", {})
    tuples |= {f"sink:{name}": count for name, count in progress["delivered"].items()}
    took = seen["at"] - before.time if before is not None else 0.0
    # After a restart everything is counted from zero.
    rates = {
        name: max(count - before.tuples.get(name, 0), 0) / took if before is not None and took > 0 else 0.0
        for name, count in tuples.items()
    }
    first = {view["name"]: view["first"] for view in seen["replicas"]}
    return Point(seen["at"], seen["epoch"], progress["lag"], tuples, rates, progress.get("epoch_ms", 0.0), first)

