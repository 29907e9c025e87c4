"""Changes to running replicas, one at a time: the others go on delivering, and output never pauses."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from penstock.control.replica_process import ReplicaProcess
from penstock.errors import CoordinationError
from penstock.replication.lifecycle import START_PATIENCE_SECONDS
from penstock.replication.replica import ReplicaPlace
from penstock.replication.roster import FAILED, PARKED, Roster
from penstock.replication.views import all_safe
from penstock.runtime.compatibility import checked_shape
from penstock.runtime.division import Rescaled
from penstock.runtime.rescale import rescale
from penstock.runtime.run_settings import RunSettings
from penstock.runtime.state_folder import StateFolder
from penstock.spark.session import cores_of
from penstock.topology.model import Topology

_LOOK_SECONDS = 0.1
_WATCHER_SECONDS = 10.0


@dataclass(frozen=True)
class Rolling:
    """Goes from replica to replica; none is touched before all are safe."""

    topology: Topology
    place: ReplicaPlace
    roster: Roster
    say: Callable[[str], None] = lambda _: None
    patience: float = START_PATIENCE_SECONDS
    only: Sequence[str] = ()
    """The replicas to change, where other nodes look after the rest; none: all."""

    def restart(self, master: str) -> list[str]:
        """End each replica after its epoch, and have it started anew, with the file and the code as they are now.

        Raises TopologyError, before anything is touched, when what replicas remember does not fit the topology any
        more; and CoordinationError when a replica does not come up again: then the others go on as they were.
        """
        self._await_watcher()
        for state in self._states().values():
            checked_shape(self.topology, state, cores_of(master))
        names = list(self.only) or self.topology.replica_names
        with self._turn() as mine:
            self.roster.open_to_new_version()
            for name in names:
                self._restart(name, mine)
            if not self.only:
                self.roster.note_alike()
        return names

    def rescale(self, operator: str, instances: int, settings: RunSettings) -> Rescaled:
        """Divide the state of each replica anew, whether it runs or not."""
        with self._turn() as mine:
            return self._rescale(operator, instances, settings, mine)

    def _rescale(self, operator: str, instances: int, settings: RunSettings, mine: str) -> Rescaled:
        done: Rescaled | None = None
        for name, state in self._states().items():
            running = state.running() is not None
            if running:
                self._await_safety("before anything is done to it", self._epoch())
            self._require_turn(mine)
            self.say(f"replica {name}")
            done = rescale(self.topology, operator, instances, replace(settings, state=state.path), self.say)
            if running:
                self._await_safety(f"after replica {name} was rescaled", done.epoch)
        if done is None:
            raise CoordinationError(f"'{self.topology.name}' has no state in {self.place.home.path} yet: run it first")
        return done

    @contextmanager
    def _turn(self) -> Iterator[str]:
        """While nobody else changes replicas of the topology; whoever is at it is waited for."""
        mine = uuid.uuid4().hex
        # Each replica is waited for twice: before it is touched, and after.
        deadline = time.monotonic() + 2 * self.patience * self.topology.replicas
        while not self.roster.take_turn(mine):
            if time.monotonic() > deadline:
                raise CoordinationError(f"another command is changing the replicas of '{self.topology.name}', and does "
                                        "not end: see `penstock status`")  # fmt: skip
            time.sleep(_LOOK_SECONDS)
        try:
            yield mine
        finally:
            with suppress(CoordinationError):
                self.roster.end_turn(mine)

    def _require_turn(self, mine: str) -> None:
        if not self.roster.take_turn(mine):
            raise CoordinationError(f"this command gave no sign of life for too long, and another one changes the "
                                    f"replicas of '{self.topology.name}' now: give it again")  # fmt: skip

    def _states(self) -> dict[str, StateFolder]:
        """What the replicas have that are to be changed."""
        states = self.place.states()
        return {name: state for name, state in states.items() if not self.only or name in self.only}

    def _restart(self, name: str, mine: str) -> None:
        self.say(f"replica {name}: waiting until all are safe")
        if name in self.roster.members():
            self._await_safety(f"before replica {name} is restarted", 0)
        member, said = self.roster.members().get(name), self.roster.told().get(name)
        self._require_turn(mine)
        if member is not None:
            process = ReplicaProcess.found(member)
            if not process.is_here:
                raise CoordinationError(f"replica {name} runs on {member.host}: give the command there")
            self.say(f"replica {name}: ending after its epoch")
            process.stop()
        before = member.run if member is not None else said.run if said is not None else None
        reached = self._epoch()
        self._await(lambda: self._came_up(name, before, reached), name)

    def _came_up(self, name: str, before: str | None, reached: int) -> bool:
        members, told = self.roster.members(), self.roster.told()
        said = told.get(name)
        if said is not None and said.run != before and said.how in (FAILED, PARKED):
            raise CoordinationError(
                f"replica {name} does not come up again, and nothing was done to the others: {said.why}\n"
                "  correct it, and give the command once more"
            )
        new = name in members and members[name].run != before
        return new and all_safe(self.topology.replica_names, members, told, reached)

    def _await_watcher(self) -> None:
        """Whoever watches the replicas may just be starting; raises CoordinationError where nobody does."""
        if not self.roster.members():
            raise CoordinationError(f"no replica of '{self.topology.name}' is running: `penstock run` starts them")
        deadline = time.monotonic() + min(self.patience, _WATCHER_SECONDS)
        while self.place.home.running() is None:
            if time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
                continue
            raise CoordinationError(
                f"nobody watches the replicas of '{self.topology.name}', and who is ended would not be started again: "
                "give `penstock run` once more, and it finds them"
            )

    def _epoch(self) -> int:
        return max((told.epoch for told in self.roster.told().values()), default=0)

    def _await_safety(self, when: str, after: int) -> None:
        names = self.topology.replica_names
        self._await(lambda: all_safe(names, self.roster.members(), self.roster.told(), after), when)

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self.patience
        while not condition():
            if time.monotonic() > deadline:
                raise CoordinationError(
                    f"not all replicas of '{self.topology.name}' are safe ({what}) after {self.patience:.0f} s: see "
                    "`penstock status`"
                )
            time.sleep(_LOOK_SECONDS)
