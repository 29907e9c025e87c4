"""What a replica does about itself when others are gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.control.priority import lower_session
from penstock.control.replica_process import ReplicaProcess

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
