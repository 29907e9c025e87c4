"""Watches on the embedded coordinator: a thread that asks the file, cheaply and often, whether it changed."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from penstock.coordination.sqlite_file import SqliteFile
from penstock.coordination.sqlite_session import end_dead_sessions
from penstock.coordination.watches import Signal, Watches

_POLL_SECONDS = 0.05
_POLLS_PER_LOOK_AT_SESSIONS = 4
"""An owner that dies writes nothing: somebody has to look."""

LAST_CHARACTER = "\U0010ffff"
"""Follows whatever a key may go on with."""

Fingerprint = tuple[int, int]
_Compared = tuple[sqlite3.Connection, int, frozenset[Signal]]


def fingerprint(connection: sqlite3.Connection, prefix: str) -> Fingerprint:
    """Two numbers that change with every change under the prefix."""
    row = connection.execute(
        "SELECT count(*), coalesce(sum(stamp), 0) FROM entry WHERE key >= ? AND key < ?",
        (prefix, prefix + LAST_CHARACTER),
    ).fetchone()
    return int(row[0]), int(row[1])


class SqliteWatcher:
    """Raises the signals whose entries have changed. Its thread starts with the first of them."""

    def __init__(self, path: Path, watches: Watches) -> None:
        self._path = path
        self._watches = watches
        self._seen: dict[Signal, Fingerprint] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, signal: Signal, now: Fingerprint) -> None:
        """Look on behalf of `signal` for anything that differs from `now`."""
        with self._lock:
            self._seen[signal] = now
            if self._thread is None:
                self._thread = threading.Thread(target=self._poll_until_over, name="penstock-watcher", daemon=True)
                self._thread.start()

    def close(self) -> None:
        self._over.set()

    def _poll_until_over(self) -> None:
        file: SqliteFile | None = None
        compared: _Compared | None = None
        polls = 0
        while not self._over.wait(_POLL_SECONDS):
            polls += 1
            try:
                file = file or SqliteFile(self._path, _POLL_SECONDS)
                connection = file.connection()
                if polls % _POLLS_PER_LOOK_AT_SESSIONS == 0 and end_dead_sessions(connection):
                    compared = None
                compared = self._compare(connection, compared)
            except (sqlite3.Error, OSError):
                # The file is away: compare anew when it is back.
                compared = None
        if file is not None:
            file.close()

    def _compare(self, connection: sqlite3.Connection, compared: _Compared | None) -> _Compared:
        """Look under the prefixes, unless neither the file nor the watches have changed since `compared`."""
        in_force = self._watches.all()
        with self._lock:
            seen = self._seen = {signal: found for signal, found in self._seen.items() if signal in in_force}
        # Asked before the look: a change during the look is found the next time. It tells of the writes of
        # all connections but this one.
        version = int(connection.execute("PRAGMA data_version").fetchone()[0])
        state = (connection, version, frozenset(seen))
        if state != compared:
            for signal in state[2]:
                now = fingerprint(connection, signal.prefix)
                if now != seen[signal]:
                    seen[signal] = now
                    signal.raise_()
        return state
