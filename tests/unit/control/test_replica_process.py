"""What a replica does about itself when others are gone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.control.priority import lower_session
from penstock.control.replica_process import ReplicaProcess
from penstock.epochs.moments import processes_of
from penstock.replication.roster import Member

from ...waiting import wait_until

REPLICA = """
import sys, time
from pathlib import Path
from penstock.control import replica_process
from penstock.runtime.state_folder import StateFolder
replica_process._LOOK_SECONDS = 0.05
home = StateFolder(Path(sys.argv[1]))
running = StateFolder.running
def told(state):
    found = running(state)
    print("watched" if found else "alone", flush=True)
    return found
StateFolder.running = told
replica_process.rise_without_supervisor(home)
print("up", flush=True)
time.sleep(600)
"""
SUPERVISOR = """
import sys, time
from pathlib import Path
from penstock.runtime.state_folder import StateFolder
with StateFolder(Path(sys.argv[1])).held():
    print("up", flush=True)
    time.sleep(600)
"""


@contextmanager
def supervised(home: Path) -> Iterator[None]:
    """Until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", SUPERVISOR, str(home)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="sessions have no niceness of their own here")
def test_a_replica_that_was_lowered_is_raised_when_its_supervisor_is_killed_and_not_before(tmp_path: Path) -> None:
    home, log = tmp_path / "home", tmp_path / "log"

    def looks() -> int:
        return log.read_text().count("watched")

    replica = ReplicaProcess.start([sys.executable, "-c", REPLICA, str(home)], log)
    niceness = Path(f"/proc/{replica.process}/autogroup")
    try:
        # Whoever watches it next may lower it again.
        for _ in range(2):
            with supervised(home):
                wait_until(lambda: lower_session(replica.process, 15))
                before = looks()
                wait_until(lambda before=before: looks() > before + 3)
                assert niceness.read_text().split()[-1] == "15"
            wait_until(lambda: niceness.read_text().split()[-1] == "0")
    finally:
        replica.kill()


DAEMON = """
import os, signal, sys, time
worker = os.fork()
if not worker:
    os.setpgid(0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)
os.waitpid(worker, os.WUNTRACED)
print("up", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("outlived", [False, True])
def test_a_frozen_worker_that_has_left_the_group_is_killed_with_its_replica(tmp_path: Path, outlived: bool) -> None:
    log = tmp_path / "log"
    replica = ReplicaProcess.start([sys.executable, "-c", DAEMON], log)
    try:
        wait_until(lambda: log.read_text() == "up\n")
        assert len(processes_of(replica.process)) == 2
        if outlived:
            os.kill(replica.process, signal.SIGKILL)
            wait_until(lambda: not replica.is_alive())
    finally:
        replica.kill()
    assert processes_of(replica.process) == []


def test_one_that_was_found_and_leads_no_group_is_killed_alone() -> None:
    waiting = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    with subprocess.Popen(waiting, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        ReplicaProcess.found(Member("1", "any", socket.gethostname(), process.pid, "run")).kill()
        assert process.wait() == -signal.SIGKILL
