"""The embedded coordinator: one SQLite file, shared by the processes of one machine."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from penstock.coordination.base import SESSION_TTL_SECONDS, Watch, check_entry
from penstock.coordination.sqlite_file import SqliteFile, transaction
from penstock.coordination.sqlite_session import SqliteSession, end_dead_sessions, is_alive, living_sessions
from penstock.coordination.sqlite_watcher import LAST_CHARACTER, SqliteWatcher, fingerprint
from penstock.coordination.watches import Watches
from penstock.errors import CoordinationError

WAIT_SECONDS = 5.0
"""How long a writer waits for another process before it gives up."""

_UNDER_PREFIX = "FROM entry WHERE key >= ? AND key < ? ORDER BY key"
_NEW_STAMP = "random() >> 20"
"""Small enough that no number of entries lets the sum overflow."""


class SqliteCoordinator:
    """Entries in a table. WAL mode, so that readers never wait for the writer.

    See `base.Coordinator` for the contract. Threads are started for the first ephemeral entry and the first
    watch only, so that those who just read and write entries have none.
    """

    def __init__(self, path: Path, ttl: float = SESSION_TTL_SECONDS, wait_seconds: float = WAIT_SECONDS) -> None:
        # Absolute: threads open the file later, from wherever the process is by then.
        self._path = path.absolute()
        self._ttl = ttl
        self._lock = threading.RLock()
        self._watches = Watches()
        self._watcher = SqliteWatcher(self._path, self._watches)
        self._session: SqliteSession | None = None
        with self._translated():
            self._file = SqliteFile(self._path, wait_seconds, make=True)

    def create_if_absent(self, key: str, value: str) -> str:
        check_entry(key, value)
        with self._connection() as connection:
            while True:
                connection.execute(
                    f"INSERT OR IGNORE INTO entry (key, value, stamp) VALUES (?, ?, {_NEW_STAMP})", (key, value)
                )
                held = _held(connection, key)
                # None when it was deleted, or its owner died, in between.
                if held is not None:
                    return held

    def create_ephemeral(self, key: str, value: str) -> str:
        check_entry(key, value)
        with self._connection() as connection:
            end_dead_sessions(connection)
            with transaction(connection):
                session = self._live_session(connection)
                connection.execute(
                    f"INSERT OR IGNORE INTO entry (key, value, session, stamp) VALUES (?, ?, ?, {_NEW_STAMP})",
                    (key, value, session.id),
                )
                held = str(connection.execute("SELECT value FROM entry WHERE key = ?", (key,)).fetchone()[0])
            if session is not self._session:
                self._session = session
                session.keep_alive()
            return held

    def put(self, key: str, value: str) -> None:
        check_entry(key, value)
        with self._connection() as connection:
            _held(connection, key)
            connection.execute(
                f"INSERT INTO entry (key, value, stamp) VALUES (?, ?, {_NEW_STAMP}) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value, stamp = excluded.stamp",
                (key, value),
            )

    def replace(self, key: str, expected: str, value: str) -> bool:
        check_entry(key, value)
        with self._connection() as connection:
            _held(connection, key)
            done = connection.execute(
                f"UPDATE entry SET value = ?, stamp = {_NEW_STAMP} WHERE key = ? AND value = ?", (value, key, expected)
            )
            return bool(done.rowcount)

    def get(self, key: str) -> str | None:
        with self._connection() as connection:
            row = _row(connection, key)
            if row is None or (row[1] is not None and not is_alive(connection, row[1])):
                return None
            return str(row[0])

    def list(self, prefix: str) -> list[str]:
        with self._connection() as connection:
            rows = connection.execute(f"SELECT key, session {_UNDER_PREFIX}", (prefix, prefix + LAST_CHARACTER))
            return [str(key) for (key,) in _of_the_living(connection, rows.fetchall())]

    def entries(self, prefix: str) -> dict[str, str]:
        with self._connection() as connection:
            rows = connection.execute(f"SELECT key, value, session {_UNDER_PREFIX}", (prefix, prefix + LAST_CHARACTER))
            return {str(key): str(value) for key, value in _of_the_living(connection, rows.fetchall())}

    def delete(self, key: str) -> None:
        with self._connection() as connection:
            connection.execute("DELETE FROM entry WHERE key = ?", (key,))

    def watch(self, prefix: str, callback: Callable[[], None]) -> Watch:
        with self._connection() as connection:
            now = fingerprint(connection, prefix)
            signal = self._watches.add(prefix, callback)
            self._watcher.add(signal, now)
            return signal

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._watches.add_expired(callback)

    def close(self) -> None:
        self._watcher.close()
        self._watches.close()
        with self._lock:
            # What cannot be removed now goes when the session's deadline has passed.
            with suppress(sqlite3.Error, OSError):
                if self._session is not None:
                    self._session.end(self._file.connection())
            self._file.close()

    def _live_session(self, connection: sqlite3.Connection) -> SqliteSession:
        """The session of this coordinator, or a new one that begins with this transaction."""
        session = self._session
        if session is not None:
            if is_alive(connection, session.id):
                return session
            session.expire()
        fresh = SqliteSession(self._path, self._ttl, self._watches.expired)
        fresh.begin(connection)
        return fresh

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._translated():
            yield self._file.connection()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if "locked" in str(error):
                advice = "another process holds it"
            else:
                advice = "check that the folder exists, is writable and has room"
            raise CoordinationError(
                f"the coordinator's file {self._path} cannot be used: {error}; {advice}"
            ) from error


def _held(connection: sqlite3.Connection, key: str) -> str | None:
    """What the key holds; entries whose owner is dead are removed first."""
    row = _row(connection, key)
    if row is not None and row[1] is not None and end_dead_sessions(connection):
        row = _row(connection, key)
    return None if row is None else str(row[0])


def _row(connection: sqlite3.Connection, key: str) -> tuple[str, str | None] | None:
    row: tuple[str, str | None] | None = connection.execute(
        "SELECT value, session FROM entry WHERE key = ?", (key,)
    ).fetchone()
    return row


def _of_the_living(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows whose last column is the session that they go with, if any: without that, and without those of the dead."""
    living = living_sessions(connection) if any(row[-1] is not None for row in rows) else set()
    return [row[:-1] for row in rows if row[-1] is None or row[-1] in living]
