"""Processes of a topology, with real ones in their place."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.control.running import Running, find_running, kill, stop
from penstock.errors import CoordinationError
from penstock.replication.replica import ReplicaPlace
from penstock.replication.roster import Member
from penstock.runtime.state_folder import StateFolder
from penstock.topology.model import Topology

Start = Callable[[str], "subprocess.Popen[str]"]

ENDS = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"
STAYS = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.fixture
def start() -> Iterator[Start]:
    """A process that leads a group of its own, as a replica does, and answers SIGTERM as it is told to."""
    started: list[subprocess.Popen[str]] = []

    def make(answer: str) -> subprocess.Popen[str]:
        code = f"import signal, sys, time\n{answer}\nprint('ready', flush=True)\ntime.sleep(60)"
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        started.append(process)
        # Not a child of whoever gives the command: it must not stay behind as a zombie.
        return process

    yield make
    for process in started:
        process.kill()
        process.wait()


def member(process: subprocess.Popen[str], name: str = "1", host: str = "") -> Member:
    return Member(name, "local", host or socket.gethostname(), process.pid, "run")


def test_what_runs_is_told_to_end_and_waited_for(start: Start) -> None:
    one, two = start(ENDS), start(ENDS)
    running = Running(None, {"1": member(one), "2": member(two, "2")})
    assert running.is_anything

    def reap() -> None:
        one.poll()
        two.poll()

    assert stop(running, 10, reap)
    assert (one.wait(), two.wait()) == (0, 0)


def test_a_supervisor_is_told_and_its_replicas_are_waited_for(start: Start) -> None:
    supervisor, replica = start(ENDS), start(ENDS)
    running = Running(supervisor.pid, {"1": member(replica)})
    assert running.processes() == [supervisor.pid, replica.pid]
    # Nobody tells the replica here.
    assert not stop(running, 0.3)
    assert replica.poll() is None


def test_one_that_does_not_end_in_time_is_told(start: Start) -> None:
    assert not stop(Running(start(STAYS).pid), 0.3)


def test_kill_does_not_ask(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    stubborn = start(STAYS)
    monkeypatch.setattr("penstock.control.running.is_alive", lambda _: stubborn.poll() is None)
    kill(Running(None, {"1": member(stubborn)}))
    assert stubborn.wait() == -signal.SIGKILL


def test_what_runs_elsewhere_is_named_and_left_alone(start: Start) -> None:
    here = start(ENDS)
    running = Running(None, {"1": member(here), "2": member(here, "2", "other-host")})
    for end in (lambda: stop(running, 1), lambda: kill(running)):
        with pytest.raises(CoordinationError, match="replica 2 on other-host"):
            end()
    assert here.poll() is None


def test_a_topology_that_never_ran_does_not_run(tmp_path: Path) -> None:
    running = find_running(Topology("pages"), ReplicaPlace(StateFolder(tmp_path / "none")), None)
    assert not running.is_anything
    assert not (tmp_path / "none").exists()
