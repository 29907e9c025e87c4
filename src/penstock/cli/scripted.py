"""Carry out the commands of a topology's own file while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.control.script import ScriptRun, held_operators
from penstock.control.script_target import RunningTarget
from penstock.coordination.opening import open_coordinator
from penstock.topology.model import Topology

_LOOK_SECONDS = 0.1


class Scripted:
    """The commands of one run: `hold` before its first epoch, `begin` when it runs."""

    def __init__(self, topology: Topology, address: str, say: Callable[[str], None]) -> None:
        self._topology = topology
        self._address = address
        self._say = say
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self) -> None:
        """Have those operators wait that are started by a command."""
        held = held_operators(self._topology.commands)
        if held:
            coordinator = open_coordinator(self._address)
            try:
                RunningTarget(self._topology, coordinator).hold(held)
            finally:
                coordinator.close()

    def begin(self) -> None:
        if self._topology.commands:
            self._thread = threading.Thread(target=self._run, name="commands", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """The run has ended: what is left of the commands is left out."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # In this thread: a connection belongs to the one that opened it.
        coordinator = open_coordinator(self._address)
        try:
            target = RunningTarget(self._topology, coordinator)
            # Who is not there yet could be neither crashed nor asked.
            while not target.is_up() and not self._over.wait(_LOOK_SECONDS):
                pass
            ScriptRun(self._topology.commands, target, self._say, self._over.is_set).run()
        finally:
            coordinator.close()


@contextmanager
def scripted(topology: Topology, address: str, say: Callable[[str], None]) -> Iterator[Scripted]:
    script = Scripted(topology, address, say)
    try:
        yield script
    finally:
        script.end()
