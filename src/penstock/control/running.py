"""The processes of a running topology: to find them, to have them end, to kill them."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from penstock.control.killing import kill_process
from penstock.coordination.opening import open_coordinator
from penstock.errors import CoordinationError
from penstock.replication.replica import ReplicaPlace
from penstock.replication.roster import Member, Roster
from penstock.runtime.state_folder import is_alive
from penstock.topology.model import Topology

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Running:
    """What runs of a topology."""

    holder: int | None = None
    """The process of a run without replicas, or that of the supervisor; None where neither runs here."""
    replicas: Mapping[str, Member] = field(default_factory=dict)
    """By name, those that give signs of life."""

    @property
    def is_anything(self) -> bool:
        return self.holder is not None or bool(self.replicas)

    def processes(self) -> list[int]:
        """Those on this machine: the holder first, which would replace a replica that ends."""
        here = [member.process for member in self.replicas.values() if member.host == socket.gethostname()]
        return [*([] if self.holder is None else [self.holder]), *(each for each in here if each != self.holder)]

    def only(self, names: Sequence[str]) -> Running:
        """Without the replicas that are not named; with no names, as it is."""
        chosen = {name: member for name, member in self.replicas.items() if not names or name in names}
        return replace(self, replicas=chosen)

    def elsewhere(self) -> list[Member]:
        return [member for member in self.replicas.values() if member.host != socket.gethostname()]


def find_running(topology: Topology, place: ReplicaPlace, coordinator: str | None) -> Running:
    """What runs now, as far as can be seen from here."""
    members: dict[str, Member] = {}
    if coordinator is not None or place.home.path.is_dir():
        opened = open_coordinator(place.coordinator(topology, coordinator))
        try:
            members = Roster(opened).members()
        finally:
            opened.close()
    return Running(place.home.running(), members)


def stop(running: Running, patience: float, look: Callable[[], None] = lambda: None) -> bool:
    """Have everything finish its epoch and end; False when something has not ended in time.

    A supervisor stops its replicas itself; replicas without one are told one by one. Raises CoordinationError for
    replicas on other machines that nobody here can tell.
    """
    if running.holder is None and running.elsewhere():
        raise CoordinationError(_not_here(running))
    told = running.processes()[:1] if running.holder is not None else running.processes()
    for process in told:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while any(is_alive(process) for process in running.processes()):
        if time.monotonic() > deadline:
            return False
        look()
        time.sleep(_LOOK_SECONDS)
    return True


def kill(running: Running) -> None:
    """`kill -9` of everything that runs here; raises CoordinationError for what runs elsewhere."""
    if running.elsewhere():
        raise CoordinationError(_not_here(running))
    for process in running.processes():
        kill_process(process)
    while any(is_alive(process) for process in running.processes()):
        time.sleep(_LOOK_SECONDS)


def _not_here(running: Running) -> str:
    others = ", ".join(f"replica {each.name} on {each.host} (process {each.process})" for each in running.elsewhere())
    return f"not from this machine: {others}; give the command there"
