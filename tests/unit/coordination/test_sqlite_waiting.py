"""A replica that was stopped inside a write is not waited for; everybody else is."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.coordination.sqlite import SqliteCoordinator
from penstock.coordination.sqlite_waiting import stopped_writers, writers
from penstock.errors import CoordinationError

from ...stopped_writer import WRITER, writer
from ...waiting import wait_until

STARTS_A_WRITER = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {WRITER!r}, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "c.sqlite"
    SqliteCoordinator(path).put("k", "before")
    return path


@pytest.mark.parametrize("words", [("--replica", "1"), ("--replica=1",)])
def test_a_stopped_replica_is_ended_and_its_siblings_go_on(path: Path, words: tuple[str, ...]) -> None:
    coordinator = SqliteCoordinator(path, wait_seconds=30)
    with writer(path, *words) as frozen:
        os.kill(frozen.pid, signal.SIGSTOP)
        wait_until(lambda: stopped_writers(path) == {frozen.pid})
        coordinator.put("k", "after")
        assert frozen.wait(10) == -signal.SIGKILL
    assert coordinator.get("k") == "after"
    coordinator.close()


def test_the_same_for_a_process_that_a_replica_has_started(path: Path) -> None:
    """Epochs are proposed by a worker of Spark's, whose command says nothing of replicas."""
    leader = [sys.executable, "-c", STARTS_A_WRITER, str(path), "--replica", "1"]
    coordinator = SqliteCoordinator(path, wait_seconds=30)
    with subprocess.Popen(leader, stdout=subprocess.PIPE, text=True, start_new_session=True) as replica:
        assert replica.stdout is not None
        frozen = int(replica.stdout.readline())
        os.killpg(replica.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: stopped_writers(path) == {frozen})
            coordinator.put("k", "after")
        finally:
            os.killpg(replica.pid, signal.SIGKILL)
    coordinator.close()


def test_the_same_for_a_database_without_a_log_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "plain.db"
    sqlite3.connect(path).close()
    with writer(path, "--replica", "1") as frozen:
        os.kill(frozen.pid, signal.SIGSTOP)
        wait_until(lambda: stopped_writers(path) == {frozen.pid})


def test_a_replica_that_is_at_work_is_waited_for(path: Path) -> None:
    coordinator = SqliteCoordinator(path, wait_seconds=1)
    with writer(path, "--replica", "1") as busy:
        with pytest.raises(CoordinationError, match="another process holds it"):
            coordinator.put("k", "meanwhile")
        assert busy.poll() is None
    coordinator.close()


@pytest.mark.parametrize("words", [(), ("--replicas=2",)])
def test_what_is_not_a_replica_is_left_alone(path: Path, words: tuple[str, ...]) -> None:
    coordinator = SqliteCoordinator(path, wait_seconds=1)
    with writer(path, *words) as other:
        os.kill(other.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(CoordinationError, match="another process holds it"):
            coordinator.put("k", "meanwhile")
        assert time.monotonic() - began >= 1
        assert other.poll() is None
    coordinator.close()


def test_only_who_holds_the_file_for_writing_is_a_writer() -> None:
    locks = """\
1: FLOCK  ADVISORY  WRITE 10 fe:00:77 0 EOF
2: POSIX  ADVISORY  READ 11 fe:00:77 128 128
3: POSIX  ADVISORY  WRITE 12 fe:00:77 120 120
3: -> POSIX  ADVISORY  WRITE 13 fe:00:77 120 120
4: POSIX  ADVISORY  WRITE 14 fe:00:78 120 120
"""
    assert writers(locks, {77}) == {12}
