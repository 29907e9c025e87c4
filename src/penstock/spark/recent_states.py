"""Hand the states of an epoch's keys to the next epoch, so that a key that goes on need not be asked for.

To ask Spark's state server for a key costs more than to process a few tuples of it. Many keys of an epoch were in the
epoch before as well: a task leaves what it knows of its keys in a file, and the task that has the same part of the keys
in the next micro-batch takes it from there, in whatever process it runs. Spark's store stays the one truth: all changes
are written to it, and where there is no file it is asked.

Only on one machine, where a task has one attempt and a failure ends the query: a file is of the query's run and of the
micro-batch before, so what it says is what was committed.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.spark.state_access import Change, StateAccess, Wake
from penstock.spark.state_socket import Key

FOLDER = "recent"
"""Of the state folder: nothing in it outlives a run."""

_MOST_BYTES = 16 << 20
_BYTES_OF_KEY = 100
"""How much one file may hold, roughly, and what a key takes beside its state. Those of further keys are asked for."""


@dataclass(frozen=True)
class Recent:
    """Where a task finds what the one before it has left, and where it leaves its own."""

    folder: Path
    run: str
    part: int
    batch: int

    def read(self) -> dict[Key, bytes | None]:
        """Nothing where nothing was left."""
        with contextlib.suppress(OSError):
            # A micro-batch may be computed twice: what the first time left counts no more.
            self._file(self.batch).unlink(missing_ok=True)
            self._file(self.batch - 2).unlink(missing_ok=True)
        try:
            with self._file(self.batch - 1).open("rb") as file:
                found: dict[Key, bytes | None] = pickle.load(file)
                return found
        except (OSError, EOFError, pickle.UnpicklingError):
            return {}

    def leave(self, known: dict[Key, bytes | None]) -> None:
        """For the next task; where it cannot be written, that one finds nothing, or what it cannot read."""
        own = self._file(self.batch)
        with contextlib.suppress(OSError):
            if known:
                self.folder.mkdir(parents=True, exist_ok=True)
                own.write_bytes(pickle.dumps(known, 5))
            else:
                # An epoch without tuples for this part.
                own.hardlink_to(self._file(self.batch - 1))

    def _file(self, batch: int) -> Path:
        return self.folder / f"{self.run}-{self.part}-{batch}"


class RecentStates:
    """The states of one task's keys; what the task before it knew is not asked for again."""

    def __init__(self, states: StateAccess, recent: Recent) -> None:
        self._states = states
        self._recent = recent
        self._before = recent.read()
        self._known: dict[Key, bytes | None] = {}
        """What is remembered of the keys of this task."""
        self._bytes = 0

    def load(self, keys: Sequence[Key]) -> list[bytes | None]:
        asked = self._unknown(keys)
        answers = iter(self._states.load(asked) if asked else ())
        loaded: list[bytes | None] = []
        for key in keys:
            if key in self._known:
                loaded.append(self._known[key])
                continue
            state = self._before[key] if key in self._before else next(answers)
            self._note(key, state)
            loaded.append(state)
        return loaded

    def expect(self, keys: Sequence[Key]) -> None:
        if asked := self._unknown(keys):
            self._states.expect(asked)

    def save(self, changes: Sequence[Change]) -> None:
        self._states.save(changes)
        for change in changes:
            self._note(change.key, change.encoded)

    def due(self, until_ms: int) -> Iterator[list[Wake]]:
        return self._states.due(until_ms)

    def leave(self) -> None:
        """All is processed and written: leave what is known to the next task."""
        self._recent.leave(self._known)

    def _unknown(self, keys: Sequence[Key]) -> list[Key]:
        return [key for key in keys if key not in self._known and key not in self._before]

    def _note(self, key: Key, state: bytes | None) -> None:
        self._before.pop(key, None)
        if key in self._known:
            self._bytes -= _size(self._known.pop(key))
        if self._bytes + _size(state) <= _MOST_BYTES:
            self._known[key] = state
            self._bytes += _size(state)


def _size(state: bytes | None) -> int:
    return _BYTES_OF_KEY + len(state or b"")
