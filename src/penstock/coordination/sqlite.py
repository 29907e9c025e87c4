"""The embedded coordinator: one SQLite file, shared by the processes of one machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import CoordinationError

_WAIT_SECONDS = 10.0
"""How long a writer waits for another process before it gives up."""


class SqliteCoordinator:
    """Entries in a table. WAL mode, so that readers never wait for the writer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._translated():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            # A power cut may take back the newest epochs; Spark's own log then has none of them either.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
            )

    def create_if_absent(self, key: str, value: str) -> str:
        with self._translated():
            self._connection.execute("INSERT OR IGNORE INTO entry VALUES (?, ?)", (key, value))
            row = self._connection.execute("SELECT value FROM entry WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise CoordinationError(f"{self._path}: '{key}' was deleted while it was being written")
        return str(row[0])

    def get(self, key: str) -> str | None:
        with self._translated():
            row = self._connection.execute("SELECT value FROM entry WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def list(self, prefix: str) -> list[str]:
        with self._translated():
            rows = self._connection.execute(
                "SELECT key FROM entry WHERE substr(key, 1, ?) = ? ORDER BY key", (len(prefix), prefix)
            )
            return [str(row[0]) for row in rows]

    def delete(self, key: str) -> None:
        with self._translated():
            self._connection.execute("DELETE FROM entry WHERE key = ?", (key,))

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CoordinationError(
                f"the coordinator's file {self._path} cannot be used: {error}; "
                "check that the folder exists, is writable and has room"
            ) from error
