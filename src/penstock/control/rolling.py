"""Changes to running replicas, one at a time: the others go on delivering, and output never pauses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.control.replica_process import ReplicaProcess
from penstock.errors import CoordinationError
from penstock.replication.lifecycle import START_PATIENCE_SECONDS
from penstock.replication.replica import ReplicaPlace
from penstock.replication.roster import FAILED, Roster
from penstock.replication.views import all_safe
from penstock.runtime.compatibility import checked_shape
from penstock.runtime.division import Rescaled
from penstock.runtime.rescale import rescale
from penstock.runtime.run_settings import RunSettings
from penstock.spark.session import cores_of
from penstock.topology.model import Topology

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Rolling:
    """Goes from replica to replica; none is touched before all are safe."""

    topology: Topology
    place: ReplicaPlace
    roster: Roster
    say: Callable[[str], None] = lambda _: None
    patience: float = START_PATIENCE_SECONDS

    def restart(self, master: str) -> list[str]:
        """End each replica after its epoch, and have it started anew, with the file and the code as they are now.

        Raises TopologyError, before anything is touched, when what replicas remember does not fit the topology any
        more; and CoordinationError when a replica does not come up again: then the others go on as they were.
        """
        self._refuse_unwatched()
        for state in self.place.states().values():
            checked_shape(self.topology, state, cores_of(master))
        self.roster.open_to_new_version()
        names = self._names()
        for name in names:
            self._restart(name)
        return names

    def rescale(self, operator: str, instances: int, settings: RunSettings) -> Rescaled:
        """Divide the state of each replica anew, whether it runs or not."""
        done: Rescaled | None = None
        for name, state in self.place.states().items():
            running = state.running() is not None
            if running:
                self._await_safety("before anything is done to it", self._epoch())
            self.say(f"replica {name}")
            done = rescale(self.topology, operator, instances, replace(settings, state=state.path), self.say)
            if running:
                self._await_safety(f"after replica {name} was rescaled", done.epoch)
        if done is None:
            raise CoordinationError(f"'{self.topology.name}' has no state in {self.place.home.path} yet: run it first")
        return done

    def _restart(self, name: str) -> None:
        self.say(f"replica {name}: waiting until all are safe")
        member = self.roster.members().get(name)
        if member is not None:
            self._await_safety(f"before replica {name} is restarted", 0)
            process = ReplicaProcess.found(member)
            if not process.is_here:
                raise CoordinationError(f"replica {name} runs on {member.host}: give the command there")
            self.say(f"replica {name}: ending after its epoch")
            process.stop()
        reached = self._epoch()
        self._await(lambda: self._came_up(name, None if member is None else member.run, reached), name)

    def _came_up(self, name: str, before: str | None, reached: int) -> bool:
        members, told = self.roster.members(), self.roster.told()
        said = told.get(name)
        if said is not None and said.run != before and said.how == FAILED:
            raise CoordinationError(
                f"replica {name} does not come up again, and nothing was done to the others: {said.why}\n"
                "  correct it, and give the command once more"
            )
        new = name in members and members[name].run != before
        return new and all_safe(self._names(), members, told, reached)

    def _refuse_unwatched(self) -> None:
        if not self.roster.members():
            raise CoordinationError(f"no replica of '{self.topology.name}' is running: `penstock run` starts them")
        if self.place.home.running() is None:
            raise CoordinationError(
                f"nobody watches the replicas of '{self.topology.name}', and who is ended would not be started again: "
                "give `penstock run` once more, and it finds them"
            )

    def _names(self) -> list[str]:
        return [str(number) for number in range(1, self.topology.replicas + 1)]

    def _epoch(self) -> int:
        return max((told.epoch for told in self.roster.told().values()), default=0)

    def _await_safety(self, when: str, after: int) -> None:
        self._await(lambda: all_safe(self._names(), self.roster.members(), self.roster.told(), after), when)

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self.patience
        while not condition():
            if time.monotonic() > deadline:
                raise CoordinationError(
                    f"not all replicas of '{self.topology.name}' are safe ({what}) after {self.patience:.0f} s: see "
                    "`penstock status`"
                )
            time.sleep(_LOOK_SECONDS)
