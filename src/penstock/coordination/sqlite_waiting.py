"""Waiting for others who write to an SQLite file, and not for a replica that was stopped in the middle of it.

SQLite has one writer at a time, and a stopped process (SIGSTOP, a frozen container) keeps its lock. Its siblings
would wait for it, which is what replicas are there to avoid: they end it, and its supervisor puts another in its
place. What it had begun to write is undone by SQLite.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

LOOK_SECONDS = 0.2
"""How long SQLite itself waits before somebody looks whom it waits for."""

_PROCESSES = Path("/proc")
_STOPPED = "T"
_SESSION = 3
"""Its place in /proc/PID/stat, counted from behind the program's name."""
_REPLICA = b"--replica"
"""Stands in the command of a process that has siblings and a supervisor."""


def wait_for_writers(file: Path, seconds: float, attempt: Callable[[], Result]) -> Result:
    """Do `attempt` until nobody else holds `file`; raises sqlite3.OperationalError after so many seconds.

    Each attempt is to wait for `LOOK_SECONDS` at most.
    """
    give_up = time.monotonic() + seconds
    stopped_before: set[int] = set()
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() >= give_up:
                raise
        stopped = stopped_writers(file)
        # Twice in a row: a process may be stopped for a moment, too.
        for pid in stopped & stopped_before:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        stopped_before = stopped


def stopped_writers(file: Path) -> set[int]:
    """The replicas that were stopped while they held the SQLite file `file` for writing."""
    # Asking the file itself (F_GETLK) would mean to open and close it, which lets go of this process's own locks.
    try:
        locks = (_PROCESSES / "locks").read_text()
    except OSError:
        return set()
    return {pid for pid in writers(locks, _inodes(file)) if _is_stopped(pid) and _is_of_a_replica(pid)}


def writers(locks: str, inodes: set[int]) -> set[int]:
    """Who holds one of the files for writing, by the text of /proc/locks."""
    found = set()
    for line in locks.splitlines():
        fields = line.split()
        # `12: POSIX ADVISORY WRITE 4711 fe:00:9986187 120 120`; those who wait have an arrow behind the number.
        if len(fields) == 8 and fields[1] == "POSIX" and fields[3] == "WRITE":
            inode = int(fields[5].rpartition(":")[2])
            if inode in inodes:
                found.add(int(fields[4]))
    return found


def _inodes(file: Path) -> set[int]:
    """The file itself, and the one beside it where write-ahead logging keeps its locks."""
    found = set()
    for path in (file, file.with_name(f"{file.name}-shm")):
        with suppress(OSError):
            found.add(path.stat().st_ino)
    return found


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _is_stopped(pid: int) -> bool:
    status = _status(pid)
    return bool(status) and status[0] == _STOPPED


def _is_of_a_replica(pid: int) -> bool:
    """Itself, or what it has started: epochs are proposed by a worker of Spark's, and a replica has its own session."""
    status = _status(pid)
    return bool(status) and (_is_replica(pid) or _is_replica(int(status[_SESSION])))


def _status(pid: int) -> list[str]:
    """What the system says of a process, from behind its name; empty when it is gone."""
    try:
        return (_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _is_replica(pid: int) -> bool:
    try:
        words = (_PROCESSES / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    # Also as one word with the replica's name, `--replica=1`.
    return any(word.partition(b"=")[0] == _REPLICA for word in words)
