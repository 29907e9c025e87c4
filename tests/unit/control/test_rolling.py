"""Replicas are changed one at a time, each by a process of its own that somebody watches."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock import Topology
from penstock.control.rolling import Rolling
from penstock.coordination.memory import MemoryCoordinator
from penstock.errors import CoordinationError
from penstock.replication.replica import ReplicaPlace
from penstock.replication.roster import FAILED, Member, Roster, Told
from penstock.runtime.state_folder import StateFolder
from penstock.topology.model import Topology as Model

from ...waiting import wait_until

WAITING = "import time; print('up', flush=True); time.sleep(600)"


def topology(folder: Path) -> Model:
    made = Topology("pair", replicas=2, cells=("any",)).source("words", rows=[], schema="word string")
    return made.count("word").sink("out", console=True).with_folder(folder)


class Watched:
    """Two replicas that are processes, and a thread that starts a new one in the place of one that has ended."""

    def __init__(self) -> None:
        self.roster = Roster(MemoryCoordinator())
        self.starts: list[str] = []
        self.fails = ""
        """Which replica does not come up again."""
        self.quiet = False
        """Whether there is nothing to do for those that are started from now on."""
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._over = threading.Event()
        self._epoch = 5
        for name in ("1", "2"):
            self._start(name)
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _start(self, name: str) -> None:
        self.starts.append(name)
        run = f"{name}-{len(self.starts)}"
        process = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        self._processes[name] = process
        if self.fails == name and len(self.starts) > 2:
            self.roster.tell(name, Told(run, how=FAILED, why="a line of it is wrong"))
            return
        self.roster.join(Member(name, "any", socket.gethostname(), process.pid, run))
        self.roster.tell(name, Told(run, 0, idle=self._epoch) if self.quiet else Told(run, self._epoch))

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            quiet = self.quiet
            self._epoch += not quiet
            for name, process in list(self._processes.items()):
                member = self.roster.members().get(name)
                if process.poll() is not None:
                    self.roster.leave(name)
                    self._start(name)
                elif member is not None and not quiet:
                    self.roster.tell(name, Told(member.run, self._epoch))

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        for process in self._processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.end()


@pytest.fixture
def place(tmp_path: Path) -> ReplicaPlace:
    return ReplicaPlace(StateFolder(tmp_path / "state"))


def test_replicas_are_restarted_one_after_the_other(watched: Watched, place: ReplicaPlace, tmp_path: Path) -> None:
    before = watched.roster.members()
    for name in ("1", "2"):
        watched.roster.compare(name, "v", 4, {"a": "a"}, {"a": f"0:{name}"})
    assert watched.roster.are_unlike()
    with place.home.held():
        assert Rolling(topology(tmp_path), place, watched.roster).restart("local[1]") == ["1", "2"]
    assert not watched.roster.are_unlike()
    after = watched.roster.members()
    assert watched.starts == ["1", "2", "1", "2"]
    assert all(after[name].process != before[name].process for name in ("1", "2"))
    assert watched.roster.version() is None


def test_replicas_that_have_nothing_to_do_are_restarted(watched: Watched, place: ReplicaPlace, tmp_path: Path) -> None:
    watched.quiet = True
    for name, member in watched.roster.members().items():
        wait_until(lambda name=name: watched.roster.told()[name].epoch == watched._epoch)
        watched.roster.tell(name, Told(member.run, watched._epoch, idle=watched._epoch))
    with place.home.held():
        assert Rolling(topology(tmp_path), place, watched.roster, patience=10.0).restart("local[1]") == ["1", "2"]
    assert watched.starts == ["1", "2", "1", "2"]


def test_where_others_look_after_the_rest_only_the_own_replicas_are_restarted_and_in_turn(
    watched: Watched, place: ReplicaPlace, tmp_path: Path
) -> None:
    own = Rolling(topology(tmp_path), place, watched.roster, patience=0.2, only=("2",))
    assert watched.roster.take_turn("another node")
    with place.home.held():
        with pytest.raises(CoordinationError, match="another command is changing the replicas of 'pair'"):
            own.restart("local[1]")
        watched.roster.end_turn("somebody else")
        assert not watched.roster.take_turn("a third")
        watched.roster.end_turn("another node")
        assert replace(own, patience=10.0).restart("local[1]") == ["2"]
    assert watched.starts == ["1", "2", "2"]
    assert watched.roster.take_turn("the next")


def test_when_one_does_not_come_up_the_others_are_left_alone(
    watched: Watched, place: ReplicaPlace, tmp_path: Path
) -> None:
    watched.fails = "1"
    second = watched.roster.members()["2"].process
    with place.home.held(), pytest.raises(CoordinationError, match=r"(?s)replica 1 does not come up.*a line of it"):
        Rolling(topology(tmp_path), place, watched.roster).restart("local[1]")
    assert watched.roster.members()["2"].process == second
    os.kill(second, 0)


def test_nobody_is_ended_whom_nobody_would_start_again(watched: Watched, place: ReplicaPlace, tmp_path: Path) -> None:
    with pytest.raises(CoordinationError, match="nobody watches the replicas of 'pair'"):
        Rolling(topology(tmp_path), place, watched.roster, patience=0.2).restart("local[1]")
    assert watched.starts == ["1", "2"]


def test_without_replicas_there_is_nothing_to_restart(place: ReplicaPlace, tmp_path: Path) -> None:
    with pytest.raises(CoordinationError, match="no replica of 'pair' is running: `penstock run` starts them"):
        Rolling(topology(tmp_path), place, Roster(MemoryCoordinator())).restart("local[1]")


def test_a_replica_that_never_becomes_safe_is_not_waited_for_forever(
    watched: Watched, place: ReplicaPlace, tmp_path: Path
) -> None:
    three = Rolling(topology(tmp_path), place, watched.roster, patience=0.2)
    watched.roster.leave("2")
    with place.home.held(), pytest.raises(CoordinationError, match=r"not all replicas of 'pair' are safe"):
        three.restart("local[1]")
    assert watched.starts == ["1", "2"]
