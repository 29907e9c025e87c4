"""Puppet-master commands given to a running topology, through its coordinator and its processes."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from penstock.control.killing import kill_process
from penstock.coordination.base import Coordinator
from penstock.epochs.orders import FIRST, SCRIPT, Orders
from penstock.errors import CoordinationError
from penstock.replication.roster import PARKED, Roster
from penstock.replication.views import safety_of, views_of
from penstock.topology.model import Topology

_CRASHES = f"{SCRIPT}crashes/"


class RunningTarget:
    """A topology that runs, or is about to.

    With `passes_on`, a replica on another machine is crashed by the process that calls `crash_here` there.
    """

    def __init__(self, topology: Topology, coordinator: Coordinator, passes_on: bool = False) -> None:
        self._topology = topology
        self._coordinator = coordinator
        self._passes_on = passes_on
        self._orders = Orders(coordinator)
        self._roster = Roster(coordinator)

    @property
    def _names(self) -> list[str]:
        return [str(number) for number in range(1, self._topology.replicas + 1)]

    def is_up(self, patient: bool = True) -> bool:
        """Whether all replicas are there, where there are several, but for those that are parked; to one that is not
        `patient` any more, whether any is."""
        if self._topology.replicas < 2:
            return True
        members = set(self._roster.members())
        parked = {name for name, told in self._roster.told().items() if told.how == PARKED}
        return bool(members) if not patient else set(self._names) <= members | parked

    def hold(self, operators: Sequence[str]) -> None:
        for operator in operators:
            for name in self._names:
                self._orders.freeze(name, operator)

    def start(self, operator: str) -> None:
        for name in self._names:
            self._orders.unfreeze(name, operator)

    def interval(self, operator: str, seconds: float) -> None:
        self._orders.set_interval(seconds, operator)

    def status(self) -> Sequence[str]:
        views = views_of(self._roster.members(), self._roster.told())
        lines = [f"replica {int(view.name) - 1}: {view.phase}, epoch {view.epoch}" for view in views]
        return [f"{self._topology.name}: {safety_of(views)}" if views else f"{self._topology.name}: running", *lines]

    def crash(self, operator: str, replica: str) -> None:
        self._check(replica)
        if self._topology.chaos != "allowed":
            raise CoordinationError("the topology does not say `chaos: allowed`")
        member = self._roster.members().get(replica)
        if member is None:
            raise CoordinationError(f"replica {int(replica) - 1} does not run now")
        if member.host != socket.gethostname() and self._passes_on:
            self._coordinator.put(_CRASHES + replica, member.run)
            return
        if member.host != socket.gethostname():
            raise CoordinationError(f"replica {int(replica) - 1} runs on {member.host}: give the command there")
        kill_process(member.process)

    def crash_here(self) -> None:
        """Crash the replicas of this machine that another one's script is to crash."""
        for key, run in self._coordinator.entries(_CRASHES).items():
            member = self._roster.members().get(key.removeprefix(_CRASHES))
            if member is None or member.run != run:
                # It has died otherwise.
                self._coordinator.delete(key)
            elif member.host == socket.gethostname():
                # The key first, so that it is done once.
                self._coordinator.delete(key)
                kill_process(member.process)

    def freeze(self, operator: str, replica: str) -> None:
        self._check(replica)
        self._orders.freeze(replica if self._topology.replicas > 1 else FIRST, operator)

    def unfreeze(self, operator: str, replica: str) -> None:
        self._check(replica)
        self._orders.unfreeze(replica if self._topology.replicas > 1 else FIRST, operator)

    def _check(self, replica: str) -> None:
        if not 1 <= int(replica) <= self._topology.replicas:
            raise CoordinationError(
                f"there is no replica {int(replica) - 1}: the topology has {self._topology.replicas}, counted from 0")
