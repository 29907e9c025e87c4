"""One replica: a run that signs in, tells its siblings how far it is, and begins where they are."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.log import EpochLog
from penstock.errors import CoordinationError, DeliveryError, TopologyError
from penstock.plan.comparing import compared_steps
from penstock.replication.catching_up import CatchingUp
from penstock.replication.divergence import Divergence
from penstock.replication.history import history_of
from penstock.replication.lifecycle import idle_seconds, is_abreast, may_be_late
from penstock.replication.roster import (
    CHANGING,
    ENDED,
    FAILED,
    FROZEN,
    RUNNING,
    STOPPED,
    Member,
    NameTaken,
    Roster,
    Told,
)
from penstock.replication.sibling import WORTH_COPYING, begin_as, begin_from_sibling, to_be_like
from penstock.replication.version import version_of
from penstock.replication.warmth import Warmth
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import Outcome, Run, RunSettings
from penstock.runtime.state_folder import StateFolder, is_alive
from penstock.topology.model import ANY_CELL, LOCAL, Topology

_SECONDS_BETWEEN_WORDS = 0.25


@dataclass(frozen=True)
class ReplicaPlace:
    """Where the replicas of a topology keep what they share, and what each has alone."""

    home: StateFolder
    elsewhere: tuple[StateFolder, ...] = ()
    """The homes of other nodes with replicas of the topology, where they can be seen from here."""

    def siblings_of(self, name: str) -> list[StateFolder]:
        """What the other replicas have, as far as it can be seen from here."""
        found = [state for other, state in self.states().items() if other != name]
        for home in self.elsewhere:
            # A disk that fails there is no reason to fail here.
            with contextlib.suppress(OSError):
                # At home is what was restored there: a node that begins with it has nothing else yet.
                found += [home, *home.replicas().values()]
        return found

    def all_states(self) -> dict[str, StateFolder]:
        """By replica, what each has that can be seen from here; of two nodes that have run one, the later."""
        found: dict[str, StateFolder] = {}
        for home in (self.home, *self.elsewhere):
            with contextlib.suppress(OSError):
                for name, state in home.replicas().items():
                    if name not in found or found[name].readable().epoch < state.readable().epoch:
                        found[name] = state
        return found

    def state_of(self, name: str) -> StateFolder:
        return self.home.replica(name)

    def states(self) -> dict[str, StateFolder]:
        """Those there are on this machine, by replica."""
        return self.home.replicas()

    def coordinator(self, topology: Topology, given: str | None) -> str:
        return self.home.coordinator_for(topology, given)


class Replica:
    """A replica from its start to its end; `run` is the run in it."""

    def __init__(
        self, topology: Topology, name: str, place: ReplicaPlace, settings: RunSettings, cell: str = LOCAL
    ) -> None:
        self.topology = topology
        self.name = name
        self._place = place
        self._cell = cell
        self._address = place.coordinator(topology, settings.coordinator)
        own = replace(settings, replica=name, state=place.state_of(name).path, coordinator=self._address)
        self._member = Member(name, cell, socket.gethostname(), os.getpid(), uuid.uuid4().hex)
        self._version = version_of(topology)
        self._told_at = 0.0
        self._told: Told | None = None
        self._over = False
        self._caught_up = False
        self._idle: tuple[int, float] | None = None
        """The epoch after which it has had nothing to do, and since when."""
        self._warmth = Warmth(topology.epoch.interval)
        self._replaced = False
        self._joined = False
        self._left = threading.Event()
        self._catching_up = CatchingUp(WORTH_COPYING)
        self._say: Callable[[str], None] = lambda _: None
        self.run = Run(topology, own)
        self.run.before_change = self._tell_change
        self._compared = compared_steps(self.run.plan)
        self._stopped_by: Divergence | None = None
        """Why it has stopped itself, where that is wanted of replicas that differ."""

    def start(self, say: Callable[[str], None] = lambda _: None, spark: SparkSession | None = None) -> None:
        """Sign in, catch up from a sibling if that is worth it, and start."""
        self._say = say
        self._coordinator: Coordinator = open_coordinator(self._address)
        self._roster = Roster(self._coordinator)
        try:
            self._refuse_other_version()
            self._refuse_taken_cell()
            self._refuse_other_history()
            self._joined = self._joins()
            # Two that were started at the same moment have not seen each other before.
            self._refuse_taken_cell()
            self._coordinator.on_expired(self._join_again)
            # Killed when all was done, before it could say so: there is nothing left to run.
            self._over = self.run.state.committed().ended
            if not self._over:
                self.run.start(spark, say, before_query=self._catch_up)
        except NameTaken:
            # Whatever is said under this name is of the other one.
            self._coordinator.close()
            raise
        except BaseException as error:
            self._leave(FAILED, str(error))
            raise

    def wait(self, look: Callable[[Snapshot], None] = lambda _: None) -> Outcome:
        def tell(snapshot: Snapshot) -> None:
            self._tell(snapshot)
            look(snapshot)

        if self._over:
            self._leave(ENDED, "")
            return Outcome(True, self.run.progress.snapshot())
        try:
            outcome = self.run.wait(tell)
        except BaseException as error:
            self._leave(FAILED, str(error))
            raise
        self._compare()
        if self._stopped_by is not None:
            self._leave(FAILED, str(self._stopped_by), outcome.progress)
            raise DeliveryError(str(self._stopped_by))
        self._leave(ENDED if outcome.ended else STOPPED, "", outcome.progress)
        return outcome

    def _catch_up(self) -> None:
        """When Spark is up, and not before: meanwhile the siblings have gone on."""
        self._wait_until_joined()
        log = EpochLog(self._coordinator)
        # Before it copies anything: what comes after this epoch stays in the log until it has done it.
        log.note_progress(self.name, self.run.state.committed().epoch)
        taken = self._take_over(log)
        if taken is not None:
            self._say(f"going on from a sibling's checkpoint of epoch {taken}")
            log.note_progress(self.name, taken)
        self._refuse_what_is_forgotten()
        self._catching_up.begins(time.monotonic(), self.run.state.committed().epoch)

    def _take_over(self, log: EpochLog) -> int | None:
        own = self.run.state
        if self._roster.are_unlike() and (like := self._to_be_like(log)) is not None:
            taken = None if like is own else self._begin_as(like, log)
            if like is own or taken is not None:
                self._roster.note_begun(self.name, self._version)
                return taken
        # Without replicas the topology has run at home, or was restored there.
        siblings = [*self._place.siblings_of(self.name), self._place.home]
        return begin_from_sibling(own, siblings, self.topology.name, self._address)

    def _to_be_like(self, log: EpochLog) -> StateFolder | None:
        """Where code was not deterministic, replicas remember different things: all go on with what one does.

        Where others have begun so, they come first: the rest may still run the code as it was.
        """
        states = {**self._place.all_states(), self.name: self.run.state}
        oldest = min(log.agreed(), default=0)
        begun = {name: states[name] for name in self._roster.begun(self._version)
                 if name in states and states[name].readable().epoch >= oldest - 1}  # fmt: skip
        name = to_be_like(begun if begun.keys() - {self.name} else states) or to_be_like(states)
        return None if name is None else states[name]

    def _begin_as(self, like: StateFolder, log: EpochLog) -> int | None:
        log.note_progress(self.name, min(self.run.state.committed().epoch, like.readable().epoch))
        return begin_as(self.run.state, like, self.topology.name, self._address)

    def _refuse_what_is_forgotten(self) -> None:
        """An epoch that is not in the log any more, while later ones are, must not be cut a second time."""
        log, own = EpochLog(self._coordinator), self.run.state.committed().epoch
        agreed = log.agreed()
        if agreed and agreed[-1] > own and agreed[0] > own + 1:
            raise CoordinationError(
                f"replica {self.name} has come to epoch {own}, the log begins with epoch {agreed[0]}, and none of its "
                "siblings' checkpoints can be seen from here: give it a copy of one's state, or let all share a disk"
            )

    def _catch_up_again(self, now: float, epoch: int) -> None:
        """Where replaying does not gain on the siblings: Spark is warm by now, and starts faster than before."""
        head = max((state.readable().epoch for state in self._place.siblings_of(self.name)), default=0)
        if self._catching_up.should_copy(now, epoch, head):
            self._say(f"{head - epoch} epochs behind, and hardly gaining: taking a sibling's checkpoint again")
            self._catching_up.copies()
            self._caught_up = False
            self.run.go_on_from(self._catch_up)

    def _joins(self) -> bool:
        """Sign in; False while one that has died here is still signed in. Raises NameTaken for one that lives."""
        try:
            self._roster.join(self._member)
        except NameTaken as taken:
            if taken.other.host != self._member.host or is_alive(taken.other.process):
                raise
            return False
        return True

    def _wait_until_joined(self) -> None:
        """The session of the dead ends by itself; Spark was started meanwhile."""
        while not self._joined:
            time.sleep(_SECONDS_BETWEEN_WORDS)
            self._joined = self._joins()

    def _refuse_other_version(self) -> None:
        own = self._version
        agreed = self._roster.agree_on(own)
        if agreed != own:
            raise TopologyError(
                f"replica {self.name} has another version of '{self.topology.name}' than its siblings ({own} here, "
                f"{agreed} there): give every replica the same file and the same code"
            )

    def _refuse_taken_cell(self) -> None:
        """A supervisor chooses another one; whoever starts a replica by hand may not know."""
        if ANY_CELL in self.topology.cells:
            return
        own = self._member
        for other in self._roster.members().values():
            same_place = other.cell == own.cell and (own.cell != LOCAL or other.host == own.host)
            # Of two that are signed in, one stays.
            goes = not self._joined or (len(other.name), other.name) < (len(self.name), self.name)
            if other.name != self.name and same_place and goes:
                raise CoordinationError(
                    f"replica {other.name} of '{self.topology.name}' is in cell {own.cell} already, process "
                    f"{other.process} on {other.host}, and a failure there would take both: give another --cell, or "
                    "write cells: any"
                )

    def _refuse_other_history(self) -> None:
        """Where others have begun anew while this node was cut off from them."""
        self._history, own = history_of(self._coordinator), self._place.home.history()
        if own is not None and own != self._history:
            raise CoordinationError(
                f"replica {self.name} has state of history {own} of '{self.topology.name}', and {self._history} was "
                "begun elsewhere: start it again on this node, which clears what is here"
            )

    def _join_again(self) -> None:
        """The session was lost: this process was frozen, or the coordinator away, and may be for a while yet.

        Tried until it answers, as the run waits for it, too. Nobody else needs this thread: nothing is watched here.
        """
        while not self._left.is_set():
            try:
                if not self._joins_again():
                    self._joined = False
                    self._replaced = True
                    self.run.stop()
                return
            except CoordinationError:
                self._left.wait(_SECONDS_BETWEEN_WORDS)

    def _joins_again(self) -> bool:
        """False when somebody has taken its place meanwhile: what is said under this name is of the other one."""
        if history_of(self._coordinator) != self._history:
            # Begun anew without it: its state is of the history before.
            return False
        try:
            self._roster.join(self._member)
        except NameTaken:
            return False
        return True

    def _tell(self, snapshot: Snapshot) -> None:
        now = time.monotonic()
        if now - self._told_at < _SECONDS_BETWEEN_WORDS:
            return
        self._told_at = now
        frozen = self.run.is_frozen
        if not frozen:
            self._catch_up_again(now, snapshot.epoch)
        self._compare()
        if self._stopped_by is not None:
            self.run.stop()
        how = FROZEN if frozen else RUNNING
        self._look_whether_warm(snapshot, now)
        told = Told(self._member.run, snapshot.epoch, self.run.first, how, progress=asdict(snapshot),
                    caught_up=self._may_be_late(snapshot), cold=self._warmth.is_cold,
                    idle=self._idle_after(snapshot, now))  # fmt: skip
        before = self._told
        if before is None or _what_counts(told) != _what_counts(before):
            with contextlib.suppress(CoordinationError):
                self._roster.tell(self.name, told)
                self._told = told

    def _tell_change(self) -> None:
        """Nothing is told until it goes on, and whoever watches it is not to take it for stuck."""
        last = self._told or Told(self._member.run, self.run.state.readable().epoch)
        told, self._idle = replace(last, how=CHANGING, idle=None), None
        with contextlib.suppress(CoordinationError):
            self._roster.tell(self.name, told)
            self._told = told

    def _look_whether_warm(self, snapshot: Snapshot, now: float) -> None:
        """Whether it is abreast of its siblings, and would not be late if it had to go on alone."""
        if (self._caught_up and not self._warmth.is_cold) or not snapshot.epoch:
            return
        wholes, abreast = [each / 1000 for each in snapshot.wholes_ms], None
        with contextlib.suppress(CoordinationError):
            head = max((said.epoch for said in self._roster.told().values()), default=0)
            abreast = is_abreast(head - snapshot.epoch, wholes[-1] if wholes else 0.0, False)
        self._warmth.look(now, snapshot.epoch, abreast, wholes)
        self._caught_up = self._caught_up or (bool(abreast) and not self._warmth.is_cold)

    def _idle_after(self, snapshot: Snapshot, now: float) -> int | None:
        """The epoch after which it has had nothing to do for a while; None while it has, or while it cannot tell."""
        if snapshot.waiting is not None or not self.run.is_idle:
            self._idle = None
        elif self._idle is None or self._idle[0] != snapshot.epoch:
            self._idle = snapshot.epoch, now
        elif now - self._idle[1] >= idle_seconds(self.topology.epoch.interval):
            # Since its start it may have done none: then it is at that of its checkpoint.
            return snapshot.epoch or self.run.state.readable().epoch
        return None

    def _may_be_late(self, snapshot: Snapshot) -> bool:
        """Whether two epochs behind is near enough: it has been abreast since its query was started, and is quick."""
        whole = snapshot.wholes_ms[-1] / 1000 if snapshot.wholes_ms else 0.0
        return self._caught_up and may_be_late(whole, self.topology.epoch.interval)

    def _compare(self) -> None:
        """Tell the siblings what the last epochs gave; where replicas that differ are to end, look whether any do.

        A supervisor looks as well, but there may be none.
        """
        for epoch, digests in self.run.new_digests():
            with contextlib.suppress(CoordinationError):
                self._roster.compare(self.name, self._version, epoch, self._compared, digests)
        if self.topology.on_divergence == "stop" and self._stopped_by is None:
            with contextlib.suppress(CoordinationError):
                self._stopped_by = self._roster.divergence()

    def _is_of_another(self) -> bool:
        """Whether somebody else is signed in by this name: what is said under it would be taken for theirs."""
        member = self._roster.members().get(self.name)
        return member is not None and member.run != self._member.run

    def _leave(self, how: str, why: str, progress: Snapshot | None = None) -> None:
        self._left.set()
        # Its reason is told also when it is its disk.
        last = self._told or Told(self._member.run, self.run.state.readable().epoch)
        if progress is not None:
            last = replace(last, epoch=progress.epoch, first=self.run.first, progress=asdict(progress))
        with contextlib.suppress(CoordinationError):
            # Neither is said for another, nor is another signed out.
            if not self._replaced and not self._is_of_another():
                self._roster.tell(self.name, replace(last, how=how, why=why))
                if self._joined:
                    self._roster.leave(self.name)
        self._coordinator.close()


def _what_counts(told: Told) -> tuple[object, ...]:
    # Also a replica that has nothing to do tells so, and one that has been at an epoch for long.
    return told.epoch, told.first, told.how, told.caught_up, told.cold, told.idle, told.progress.get("at_work")


@contextmanager
def opened_roster(address: str) -> Iterator[Roster]:
    coordinator = open_coordinator(address)
    try:
        yield Roster(coordinator)
    finally:
        coordinator.close()


def log_of(state: StateFolder) -> Path:
    """What a replica that was started by a supervisor prints."""
    return state.logs / "replica.log"
