"""Making a topology ready before its replicas start: what they remember, the epoch log, and the sinks.

On one machine, or once for all nodes that have replicas of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.control.share import Share, a_while, alone, wait
from penstock.control.shared_sinks import SharedSinks
from penstock.coordination.base import Coordinator
from penstock.epochs.log import EpochLog
from penstock.epochs.orders import Orders
from penstock.errors import CoordinationError
from penstock.replication.history import history_of, note_history
from penstock.replication.replica import ReplicaPlace
from penstock.replication.roster import Roster
from penstock.replication.version import version_of
from penstock.runtime.state_folder import StateFolder, ToRestore, UnusableState
from penstock.runtime.swap import settle
from penstock.topology.model import Topology


@dataclass(frozen=True)
class MakingReady:
    """Of one topology, by the supervisor that holds its home."""

    topology: Topology
    place: ReplicaPlace
    sinks: SharedSinks
    coordinator: Coordinator
    go_back: Callable[[int], None] | None = None
    """See `Supervisor`."""

    @property
    def _log(self) -> EpochLog:
        return EpochLog(self.coordinator)

    @property
    def _roster(self) -> Roster:
        return Roster(self.coordinator)

    def by_itself(self, fresh: bool) -> None:
        """Nobody runs: go on from what is there, or begin anew.

        Replicas whose disks fail are left to whoever starts them. They are not begun anew without: they would come back
        with what they have.
        """
        without_disk = self._replicas_without_disk()
        home = self.place.home
        settle(home)
        anew = fresh or home.furthest().committed().ended
        if without_disk and (anew or home.restored.exists()):
            raise next(iter(without_disk.values()))
        if anew:
            home.clear(coordinator=False)
        restored = home.to_restore()
        if anew or home.restored.exists():
            # What replicas have is of another history.
            home.forget_replicas()
            self._roster.note_alike()
        if anew:
            self._forget_the_log()
        self._take_in(restored)
        self._log.only_replicas(self.topology.replica_names)
        self._roster.forget()
        self._roster.adopt(version_of(self.topology))
        # Nobody runs: whatever is staged will not be committed. Of a replica without a disk nobody knows.
        self.sinks.forget_staged(name for name in self.topology.replica_names if name not in without_disk)
        self.sinks.open(anew or home.furthest().committed().epoch == 0, restored.sinks, shared=bool(without_disk))
        home.restored.unlink(missing_ok=True)

    def _refuse_what_cannot_be_cleared(self) -> None:
        for error in self._replicas_without_disk().values():
            raise error

    def _replicas_without_disk(self) -> dict[str, UnusableState]:
        """By replica, what is wrong with its disk. Raises CoordinationError for one that still has its state: it is
        frozen, or its JVM is ending."""
        unusable = {}
        for name, state in self.place.states().items():
            try:
                with state.held():
                    pass
            except UnusableState as error:
                unusable[name] = error
        return unusable

    def _forget_the_log(self) -> None:
        self._log.clear()
        Orders(self.coordinator).forget()

    def _take_in(self, restored: ToRestore) -> None:
        """What the log is to know after a restore."""
        if restored.forget:
            self._forget_the_log()
        self._log.imported(restored.epochs)
        if restored.sinks:
            # They have nothing of what the log says was delivered.
            self._log.forget_deliveries()

    def with_others(self, share: Share, fresh: bool, lock: int) -> None:
        """What is of this node, and once, for all nodes, what they share.

        The first one that comes with a new history begins it, with nothing or with a checkpoint. Before it is noted as
        begun, whoever comes next does all of that again; afterwards the others only clear what they have themselves.
        """
        home = self.place.home
        settle(home)
        before = history_of(self.coordinator)
        own = version_of(self.topology)
        with alone(self.coordinator):
            known = history_of(self.coordinator)
            if known not in (before, share.history) or (known is not None and known > share.history):
                raise CoordinationError(f"'{self.topology.name}' was begun anew while this node waited for its turn")
            deadline = a_while()
            begins = self._begins(share, known)
            while self._roster.members() and (begins or self._roster.agree_on(own) != own):
                wait(deadline, f"replicas of another version of '{self.topology.name}' to end")
            goes_back = begins and self.go_back is not None
            if goes_back:
                self._refuse_what_cannot_be_cleared()
                assert self.go_back is not None
                self.go_back(lock)
                if history_of(self.coordinator) != known or self._roster.members():
                    # Frozen for too long, it has lost its turn.
                    raise CoordinationError(f"another node has made '{self.topology.name}' ready meanwhile")
            elif fresh or self._has_an_older_history(share):
                self._refuse_what_cannot_be_cleared()
                home.clear(coordinator=False)
                home.forget_replicas()
            home.note_history(share.history)
            if begins:
                self._roster.note_alike()
            if begins and not goes_back:
                self._forget_the_log()
            if not self._roster.members():
                restored = home.to_restore() if goes_back else ToRestore()
                self._take_in(restored)
                self._log.only_replicas(self.topology.replica_names)
                self._roster.forget()
                self._roster.adopt(own)
                # One that is frozen on another node is signed out, and still there.
                self.sinks.forget_staged(share.here)
                self.sinks.open(not goes_back and self._begins_empty(share), restored.sinks, shared=True)
            home.restored.unlink(missing_ok=True)
            note_history(self.coordinator, share.history)

    def _begins(self, share: Share, known: int | None) -> bool:
        """Whether this node begins a new history; `known` is the one that was begun last."""
        if known is not None:
            return known < share.history
        # A coordinator that was lost is no reason to go back a second time.
        return self.go_back is not None and not any(home.furthest().committed().epoch for home in self._homes(share)
                                                     if home.history() == share.history)  # fmt: skip

    def _has_an_older_history(self, share: Share) -> bool:
        """Whether what this node has was not cleared yet: it was away, or killed before it came to that."""
        noted = self.place.home.history()
        return noted is not None and noted < share.history

    def _homes(self, share: Share) -> tuple[StateFolder, ...]:
        """What the nodes have of this history, as far as it can be seen from here, and what this one has."""
        return (self.place.home, *share.elsewhere(self.topology.name, self.place.home))

    def _begins_empty(self, share: Share) -> bool:
        """Whether nothing was delivered yet; raises CoordinationError for state without a log."""
        if self._log.agreed():
            return False
        if any(home.furthest().committed().epoch for home in self._homes(share)):
            raise CoordinationError(
                f"the epoch log of '{self.topology.name}' is empty, and there is state of another history: submit it "
                "with --replace --fresh to begin anew"
            )
        return True
