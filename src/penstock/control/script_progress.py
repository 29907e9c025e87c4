"""How far a topology's script was carried out, in its coordinator: whoever goes on with it repeats nothing.

One process at a time carries a script out, and notes each command before it does. A run that begins anew begins its
script anew: the note goes with the other orders.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from penstock.coordination.base import Coordinator
from penstock.epochs.orders import SCRIPT
from penstock.topology.model import Command

_NOTE = f"{SCRIPT}note"
_RUNNER = f"{SCRIPT}runner"


@dataclass(frozen=True)
class Note:
    """What is written down about a script."""

    script: str
    """A digest of its commands: with others it is another script."""
    next: int
    """The first command that was not begun."""
    done: bool
    by: str
    """Tells the processes apart that have written it."""
    who: str
    """For people: the host, and the process there."""


class ScriptProgress:
    """The progress of one script, as one process sees it; for one thread at a time."""

    def __init__(self, coordinator: Coordinator, commands: Sequence[Command]) -> None:
        self._coordinator = coordinator
        self._script = hashlib.sha256("\n".join(map(str, commands)).encode()).hexdigest()
        self._mine = uuid.uuid4().hex

    def note(self) -> Note | None:
        """What there is about this script; None before it was begun."""
        text = self._coordinator.get(_NOTE)
        note = None if text is None else Note(**json.loads(text))
        return note if note is not None and note.script == self._script else None

    def take(self) -> bool:
        """Whether it is this process that carries the script out, until `leave` or its end."""
        return self._coordinator.create_ephemeral(_RUNNER, self._mine) == self._mine

    def leave(self) -> None:
        if self._coordinator.get(_RUNNER) == self._mine:
            self._coordinator.delete(_RUNNER)

    def begin(self) -> Note:
        """Write down that the script was taken over, from where it is; only who has taken it may."""
        before = self.note()
        me = f"process {os.getpid()} on {socket.gethostname()}"
        note = Note(self._script, 0 if before is None else before.next, before is not None and before.done,
                    self._mine, me)  # fmt: skip
        self._coordinator.put(_NOTE, json.dumps(asdict(note)))
        return note

    def advance(self, number: int, done: bool = False) -> bool:
        """Write down that all before `number` were begun; False when another process goes on with it by now."""
        while True:
            text = self._coordinator.get(_NOTE)
            note = None if text is None else Note(**json.loads(text))
            if text is None or note is None or note.by != self._mine:
                return False
            if self._coordinator.replace(_NOTE, text, json.dumps(asdict(replace(note, next=number, done=done)))):
                return True
