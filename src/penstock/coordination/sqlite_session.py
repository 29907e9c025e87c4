"""Sessions in the embedded coordinator: a row with a deadline, which its owner keeps moving.

A session is dead when its deadline has passed or when its process is gone, whichever is seen first. Who writes or
watches and comes across a dead session removes it together with its entries; who only reads passes over them, for a
reader that is stopped must not be found with the file locked. Deadlines count from the start of the machine, which the
file is of: a clock that is set does not end anything.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from penstock.coordination.process_mark import (
    is_gone,
    is_of_another_start,
    mark_of_this_process,
    since_start_of_machine,
)
from penstock.coordination.sqlite_file import SqliteFile, transaction

_BEATS_PER_TTL = 4


class SqliteSession:
    """The session of this process. `begin` inside a transaction, then `keep_alive`."""

    def __init__(self, path: Path, ttl: float, expired: Callable[[], None]) -> None:
        self.id = uuid.uuid4().hex
        self._path = path
        self._ttl = ttl
        self._tell_expired = expired
        self._over = threading.Event()
        self._deadline = 0.0
        self._lock = threading.Lock()

    def begin(self, connection: sqlite3.Connection) -> None:
        self._deadline = since_start_of_machine() + self._ttl
        row = (self.id, self._deadline, mark_of_this_process())
        connection.execute("INSERT INTO session VALUES (?, ?, ?)", row)

    def keep_alive(self) -> None:
        """Start the thread that moves the deadline."""
        threading.Thread(target=self._beat_until_over, name="penstock-session", daemon=True).start()

    def expire(self) -> None:
        """Take note that the session is lost, and tell it once."""
        with self._lock:
            if self._over.is_set():
                return
            self._over.set()
        self._tell_expired()

    def end(self, connection: sqlite3.Connection) -> None:
        """Give up the session and its entries."""
        self._over.set()
        with transaction(connection):
            _remove(connection, self.id)

    def _beat_until_over(self) -> None:
        pause = self._ttl / _BEATS_PER_TTL
        file: SqliteFile | None = None
        while not self._over.wait(pause):
            try:
                # A connection of its own: the coordinator's may be waiting for somebody.
                file = file or SqliteFile(self._path, pause)
                alive = self._beat(file.connection())
            except (sqlite3.Error, OSError):
                alive = since_start_of_machine() < self._deadline
            if not alive:
                self.expire()
        if file is not None:
            file.close()

    def _beat(self, connection: sqlite3.Connection) -> bool:
        now = since_start_of_machine()
        beat = connection.execute(
            "UPDATE session SET deadline = ? WHERE id = ? AND deadline > ?", (now + self._ttl, self.id, now)
        )
        if beat.rowcount:
            self._deadline = now + self._ttl
        return bool(beat.rowcount)


def is_alive(connection: sqlite3.Connection, session: str) -> bool:
    row = connection.execute("SELECT deadline, process FROM session WHERE id = ?", (session,)).fetchone()
    return row is not None and not _is_dead(*row)


def living_sessions(connection: sqlite3.Connection) -> set[str]:
    """Asked after entries were read: those of a session that has ended meanwhile are gone, too."""
    rows = connection.execute("SELECT id, deadline, process FROM session").fetchall()
    return {str(session) for session, *life in rows if not _is_dead(*life)}


def end_dead_sessions(connection: sqlite3.Connection) -> bool:
    """Remove the sessions whose owners are dead, with their entries; whether there were any."""
    rows = connection.execute("SELECT id, deadline, process FROM session").fetchall()
    dead = [session for session, *life in rows if _is_dead(*life)]
    if dead:
        with transaction(connection):
            for session in dead:
                # Its owner may have moved the deadline since.
                if not is_alive(connection, session):
                    _remove(connection, session)
    return bool(dead)


def _is_dead(deadline: float, process: str) -> bool:
    return deadline <= since_start_of_machine() or is_gone(process) or is_of_another_start(process)


def _remove(connection: sqlite3.Connection, session: str) -> None:
    connection.execute("DELETE FROM entry WHERE session = ?", (session,))
    connection.execute("DELETE FROM session WHERE id = ?", (session,))
