"""The file of the embedded coordinator: its tables, and a connection that notices when the file is lost."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.coordination.sqlite_waiting import LOOK_SECONDS, wait_for_writers

_VERSION = 1
"""Kept in the file; 0 is a file that is new, or from before sessions."""

_LOCKED_PAUSE_SECONDS = 0.02


class SqliteFile:
    """One connection to the file, for one thread at a time. Raises what sqlite3 and the file system raise."""

    def __init__(self, path: Path, wait_seconds: float, make: bool = False) -> None:
        """Open the file at an absolute path; if it is not there, make it or fail.

        Whoever finds it locked by others waits for `wait_seconds`.
        """
        self._path = path
        self._wait_seconds = wait_seconds
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = self._open(make)
        self._identity = _identity(path)

    def connection(self) -> sqlite3.Connection:
        """The connection; a new one if the path now leads to another file.

        A file that was moved or deleted could be used on and on, unseen by everybody else: so that is an
        error for as long as there is no file.
        """
        identity = _identity(self._path)
        if identity != self._identity:
            fresh = self._open(make=False)
            self._connection.close()
            self._connection, self._identity = fresh, identity
        return self._connection

    def close(self) -> None:
        self._connection.close()

    def _open(self, make: bool) -> sqlite3.Connection:
        address = f"{self._path.as_uri()}?mode={'rwc' if make else 'rw'}"
        connection = sqlite3.connect(
            address, uri=True, timeout=min(self._wait_seconds, LOOK_SECONDS), isolation_level=None,
            check_same_thread=False, factory=_PatientConnection,
        )  # fmt: skip
        connection.file, connection.wait_seconds = self._path, self._wait_seconds
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError:
                # Of several processes that make the file at once SQLite lets some fail without waiting.
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LOCKED_PAUSE_SECONDS)
        # A power cut may take back the newest epochs; Spark's own log then has none of them either.
        connection.execute("PRAGMA synchronous=NORMAL")
        if _version(connection) < _VERSION:
            with transaction(connection):
                if _version(connection) < _VERSION:
                    _make_tables(connection)


class _PatientConnection(sqlite3.Connection):
    """Waits for other writers, but not for one that was stopped."""

    file: Path
    wait_seconds: float

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        return wait_for_writers(self.file, self.wait_seconds, lambda: sqlite3.Connection.execute(self, *statement))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing; the only writer meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    # The session that an ephemeral entry goes with.
    connection.execute("ALTER TABLE entry ADD COLUMN session TEXT")
    # Another number with every write: watches compare their sums.
    connection.execute("ALTER TABLE entry ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0")
    connection.execute("CREATE INDEX ephemeral ON entry (session) WHERE session IS NOT NULL")
    connection.execute(
        "CREATE TABLE session (id TEXT PRIMARY KEY, deadline REAL NOT NULL, process TEXT NOT NULL) WITHOUT ROWID"
    )
    connection.execute(f"PRAGMA user_version={_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _identity(path: Path) -> tuple[int, int]:
    # The connection holds the old file open, so no new file can be given its number.
    status = os.stat(path)  # noqa: PTH116
    return status.st_dev, status.st_ino
