"""The master: of several candidates one leads, and gives what is submitted a place.

It may die at any time: what is wanted stands in the coordinator, and those who run things look there.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from penstock.console.commands import busy, paused
from penstock.console.desired import Desired, Goal, Wanted
from penstock.console.keeping import Keepers
from penstock.console.nodes import Nodes
from penstock.console.placing import load_of, place
from penstock.console.watching import LOOK_SECONDS, Watching
from penstock.coordination.base import Coordinator
from penstock.coordination.election import Election
from penstock.errors import CommandRefused, CoordinationError

_MASTERS = "console/masters/"
ELECTION = "master"
_LOOKS_BETWEEN_TIDYING = 100
LEASE_SECONDS = 3.0
"""A standby leads at most so long after its predecessor's last sign of life, and some looks."""


@dataclass(frozen=True)
class Candidate:
    """A master, leading or not."""

    name: str
    """Of this start alone."""
    url: str
    """Where its page is."""
    version: str
    process: int
    host: str = ""
    """Its machine: an address of loopback means another one elsewhere."""


class Master:
    """One candidate, from `start` to `stop`."""

    def __init__(self, coordinator: Coordinator, me: Candidate, say: Callable[[str], None] = lambda _: None) -> None:
        self.me = me
        self._say = say
        self.watching = Watching(coordinator)
        self._coordinator = coordinator
        self._desired = Desired(coordinator)
        self._nodes = Nodes(coordinator)
        self._election = Election(coordinator, ELECTION, me.name, LEASE_SECONDS)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._dead: set[str] = set()
        """Masters that did not campaign when it was last looked."""
        self._lock = threading.Lock()
        self._pausing: set[str] = set()
        """The topologies that this one has paused for something that it does now."""

    @property
    def leading(self) -> bool:
        """Whether this one certainly leads now."""
        return self._election.leading

    def start(self) -> None:
        self._coordinator.put(_MASTERS + self.me.name, json.dumps(asdict(self.me)))
        self._election.campaign()
        self._thread = threading.Thread(target=self._watch_until_over, name="penstock-watching", daemon=True)
        self._thread.start()

    def _say_where(self) -> None:
        """Once more, where it was taken for dead."""
        if self._coordinator.get(_MASTERS + self.me.name) is None:
            self._coordinator.put(_MASTERS + self.me.name, json.dumps(asdict(self.me)))

    def stop(self) -> None:
        self._over.set()
        self._election.resign()
        with contextlib.suppress(CoordinationError):
            self._coordinator.delete(_MASTERS + self.me.name)
        if self._thread is not None:
            self._thread.join()

    def leader(self) -> Candidate | None:
        """The candidate that leads now, as far as known."""
        with contextlib.suppress(CoordinationError):
            name = self._election.leader()
            text = None if name is None else self._coordinator.get(_MASTERS + name)
            return None if text is None else Candidate(**json.loads(text))
        return None

    def candidates(self) -> list[Candidate]:
        """All that campaign now."""
        found = (self._coordinator.get(_MASTERS + name) for name in self._election.candidates())
        return [Candidate(**json.loads(text)) for text in found if text is not None]

    def others(self) -> list[Candidate]:
        """All that campaign now but this one."""
        return [candidate for candidate in self.candidates() if candidate.name != self.me.name]

    def place_all(self) -> None:
        """Give every topology that has none a place; only the leader does."""
        everything, alive = self.watching.wanted(), self.watching.nodes()
        load = load_of(everything)
        for wanted in everything:
            nodes = place(wanted, alive, load, self.watching.lost(wanted))
            if nodes is not None:
                placed = nodes
                self._desired.change(wanted.name, lambda now, placed=placed: replace(now, nodes=placed))  # type: ignore[misc]
                load.update(placed.values())

    @contextmanager
    def pausing(self, name: str) -> Iterator[None]:
        """While something is done for which a topology is paused; then it runs, unless somebody has stopped it.

        Raises CommandRefused where it is not to run, or where it is paused for something else.
        """
        with self._lock:
            if name in self._pausing:
                raise busy(name)
            self._pausing.add(name)
        try:
            self._desired.change(name, paused)
            try:
                yield
            finally:
                # Without the coordinator who leads does it at its next look.
                with contextlib.suppress(CoordinationError):
                    self._desired.change(name, _running_again)
        finally:
            self._pausing.discard(name)

    def _resume(self) -> None:
        """What is paused for something that nobody does any more: its leader was lost, or could not say so."""

        def resumed(now: Wanted) -> Wanted:
            # This one may have begun something since the look.
            return now if now.name in self._pausing else _running_again(now)

        for wanted in self.watching.wanted():
            if wanted.goal is Goal.PAUSE and wanted.name not in self._pausing:
                self._desired.change(wanted.name, resumed)

    def _forget_the_dead(self) -> None:
        """What masters have left that were killed: each start has a name of its own. One that was frozen says again
        where it is."""
        told = {key.removeprefix(_MASTERS) for key in self._coordinator.list(_MASTERS)}
        dead = told - set(self._election.candidates())
        # Whoever has just started may not campaign yet.
        for name in dead & self._dead:
            self._coordinator.delete(_MASTERS + name)
            Keepers(self._coordinator).forget(name)
        self._dead = dead

    def _watch_until_over(self) -> None:
        looks = 0
        odd: frozenset[str] = frozenset()
        while not self._over.is_set():
            began = time.monotonic()
            try:
                self.watching.look_unless_recent(LOOK_SECONDS / 2)
                for each in sorted(self.watching.odd - odd):
                    self._say(each)
                odd = self.watching.odd
                self.watching.write_events(self.leading)
                self._say_where()
                if self.leading:
                    self._resume()
                    self.place_all()
                    if looks % _LOOKS_BETWEEN_TIDYING == 0:
                        self._nodes.forget_old_results()
                        self._forget_the_dead()
                looks += 1
            except (CoordinationError, CommandRefused):
                # Refused: it was removed since the look.
                pass
            except Exception as error:
                # Whatever it is: who leads and does not look would keep all others from it.
                self._say(f"the master's look failed: {type(error).__name__}: {error}")
            self._over.wait(max(LOOK_SECONDS - (time.monotonic() - began), 0.05))


def _running_again(paused: Wanted) -> Wanted:
    return replace(paused, goal=Goal.RUN) if paused.goal is Goal.PAUSE else paused
