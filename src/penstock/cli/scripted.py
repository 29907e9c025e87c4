"""Carry out the commands of a topology's own file while it runs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from penstock.control.script import ScriptRun, held_operators
from penstock.control.script_target import RunningTarget
from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import Orders
from penstock.errors import CoordinationError
from penstock.topology.model import Topology

_LOOK_SECONDS = 0.1


class Scripted:
    """The commands of one run: `hold` before its first epoch, `begin` when it runs.

    The run does not end before all commands are given, also where its input does: DADSTORM's processes live on, too.
    """

    def __init__(self, topology: Topology, address: str, say: Callable[[str], None]) -> None:
        self._topology = topology
        self._address = address
        self._say = say
        self._mine = uuid.uuid4().hex
        self._holding: Coordinator | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self) -> None:
        """Have those operators wait that are started by a command, and the end of the input until all are given."""
        if not self._topology.commands:
            return
        # Open until the end: when this process dies, nobody waits for its commands.
        self._holding = open_coordinator(self._address)
        Orders(self._holding).hold_end(self._mine)
        RunningTarget(self._topology, self._holding).hold(held_operators(self._topology.commands))

    def begin(self) -> None:
        if self._topology.commands:
            self._thread = threading.Thread(target=self._run, name="commands", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """The run has ended: what is left of the commands is left out."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._holding is not None:
            self._holding.close()
            self._holding = None

    def _run(self) -> None:
        # In this thread: a connection belongs to the one that opened it.
        coordinator = open_coordinator(self._address)
        release = partial(self._release, Orders(coordinator))
        try:
            target = RunningTarget(self._topology, coordinator)
            # Who is not there yet could be neither crashed nor asked.
            while not _is_up(target) and not self._over.wait(_LOOK_SECONDS):
                pass
            ScriptRun(self._topology.commands, target, self._say, self._over.is_set, when_given=release).run()
        finally:
            release()
            coordinator.close()

    def _release(self, orders: Orders) -> None:
        """Let the run end; tried until the coordinator has heard of it, for otherwise it would never end."""
        while not self._over.is_set():
            try:
                orders.release_end(self._mine)
            except CoordinationError:
                self._over.wait(_LOOK_SECONDS)
            else:
                return


def _is_up(target: RunningTarget) -> bool:
    with suppress(CoordinationError):
        return target.is_up()
    return False


@contextmanager
def scripted(topology: Topology, address: str, say: Callable[[str], None]) -> Iterator[Scripted]:
    script = Scripted(topology, address, say)
    try:
        yield script
    finally:
        script.end()
