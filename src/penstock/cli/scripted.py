"""Carry out the commands of a topology's own file while it runs."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from penstock.control.script import ScriptRun, held_operators, last_given
from penstock.control.script_progress import Note, ScriptProgress
from penstock.control.script_target import RunningTarget
from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import Orders
from penstock.errors import CoordinationError
from penstock.topology.model import Topology

_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 180.0
"""So long all replicas are waited for; then the commands are given to those that are there."""


class Scripted:
    """The commands of one run: `hold` before its first epoch, `begin` when it runs.

    They are carried out once, also where several processes look after the topology, or one after the other: each goes
    on where the last one was. The run does not end before all are given, also where its input does: DADSTORM's
    processes live on, too.
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
        """Have those operators wait that are started by a command, unless the commands were begun before; and the end
        of the input until all are given."""
        if not self._topology.commands:
            return
        # Open until the end: when this process dies, nobody waits for its commands.
        self._holding = open_coordinator(self._address)
        Orders(self._holding).hold_end(self._mine)
        held = held_operators(self._topology.commands)
        if not held:
            return
        with self._opened() as (progress, target, _):
            while progress.note() is None and not self._over.is_set():
                if progress.take():
                    if progress.note() is None:
                        target.hold(held)
                        progress.begin()
                    progress.leave()
                else:
                    # Another node is about to.
                    self._over.wait(_LOOK_SECONDS)

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
        while True:
            try:
                with self._opened() as (progress, target, orders):
                    note = self._when_mine(progress, target, orders)
                    if note is not None:
                        self._carry_out(note, progress, target, orders)
                    self._release(orders)
                return
            except CoordinationError:
                # Away for a while: it goes on with the next command, and the end is held as long.
                if self._over.wait(_LOOK_SECONDS):
                    return

    def _when_mine(self, progress: ScriptProgress, target: RunningTarget, orders: Orders) -> Note | None:
        """From where this process carries the commands out: at once, or when another has died; None: it does not."""
        began = time.monotonic()
        while not self._over.is_set():
            # The coordinator may be away for a while.
            with suppress(CoordinationError):
                note = progress.note()
                target.crash_here()
                if note is not None and note.done:
                    return None
                if note is not None and note.next > last_given(self._topology.commands):
                    orders.release_end(self._mine)
                # Who is not there yet could be neither crashed nor asked.
                if target.is_up(time.monotonic() - began < _PATIENCE_SECONDS) and progress.take():
                    return progress.begin()
            self._over.wait(_LOOK_SECONDS)
        with suppress(CoordinationError):
            # To say what is left out.
            return progress.begin() if progress.take() else None
        return None

    def _carry_out(self, note: Note, progress: ScriptProgress, target: RunningTarget, orders: Orders) -> None:
        commands = self._topology.commands
        if note.done:
            return
        if note.next:
            self._say(f"% {note.next} of {len(commands)} commands were begun before, and are not repeated")
        given = partial(self._release, orders)
        advance = partial(self._advance, progress)
        run = ScriptRun(commands, target, self._say, self._over.is_set, advance=advance, when_given=given)
        run.run(note.next)
        if not self._over.is_set():
            progress.advance(len(commands), done=True)

    def _advance(self, progress: ScriptProgress, number: int) -> bool:
        """A command that nobody could be told of is not left out: it waits until the coordinator is there."""
        while not self._over.is_set():
            try:
                return progress.advance(number)
            except CoordinationError:
                self._over.wait(_LOOK_SECONDS)
        return False

    def _release(self, orders: Orders) -> None:
        """Let the run end; tried until the coordinator has heard of it, for otherwise it would never end."""
        while not self._over.is_set():
            try:
                orders.release_end(self._mine)
            except CoordinationError:
                self._over.wait(_LOOK_SECONDS)
            else:
                return

    @contextmanager
    def _opened(self) -> Iterator[tuple[ScriptProgress, RunningTarget, Orders]]:
        coordinator = open_coordinator(self._address)
        try:
            yield (ScriptProgress(coordinator, self._topology.commands),
                   RunningTarget(self._topology, coordinator, passes_on=True), Orders(coordinator))  # fmt: skip
        finally:
            coordinator.close()


@contextmanager
def scripted(topology: Topology, address: str, say: Callable[[str], None]) -> Iterator[Scripted]:
    script = Scripted(topology, address, say)
    try:
        yield script
    finally:
        script.end()
