"""The commands of a topology's own file are carried out once, whoever looks after it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.cli.scripted import Scripted
from penstock.control import script_target
from penstock.control.script_progress import ScriptProgress
from penstock.control.script_target import RunningTarget
from penstock.coordination.memory import MemoryCoordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import Orders
from penstock.replication.roster import PARKED, Member, Roster, Told
from penstock.topology.model import Command, Topology

from ...waiting import wait_until


def topology(*lines: str) -> Topology:
    return Topology("t", chaos="allowed", commands=tuple(
        Command(verb, tuple(rest)) for verb, *rest in (line.split() for line in lines)))  # fmt: skip


SCRIPT = topology("Start OP1", "Crash OP1 0", "Wait 1", "Crash OP2 0", "Status")


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'coordinator.sqlite'}"


@pytest.fixture
def crashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that were crashed."""
    found: list[str] = []
    monkeypatch.setattr(RunningTarget, "crash", lambda self, operator, replica: found.append(operator))
    return found


def carry_out(script: Topology, address: str, until: Callable[[list[str]], bool] | None = None) -> list[str]:
    """What a process says that carries the commands out, or goes on with them."""
    said: list[str] = []
    one = Scripted(script, address, said.append)
    one.hold()
    one.begin()
    assert one._thread is not None
    if until is None:
        one._thread.join()
    else:
        wait_until(lambda: until(said))
    one.end()
    return said


def test_who_takes_a_topology_over_repeats_nothing(address: str, crashed: list[str]) -> None:
    assert carry_out(SCRIPT, address)[:2] == ["Start OP1", "Crash OP1 0"]
    assert carry_out(SCRIPT, address) == []
    assert crashed == ["OP1", "OP2"]
    # What was started is not held again.
    coordinator = open_coordinator(address)
    assert Orders(coordinator).frozen("1") == ()
    # A run that begins anew begins them anew; so do other commands.
    Orders(coordinator).forget()
    coordinator.close()
    carry_out(SCRIPT, address)
    assert crashed == ["OP1", "OP2"] * 2
    carry_out(topology("Crash OP3 0"), address)
    assert crashed == ["OP1", "OP2"] * 2 + ["OP3"]


def test_who_follows_one_that_has_died_goes_on_with_the_next_command(address: str, crashed: list[str]) -> None:
    dying = open_coordinator(address)
    progress = ScriptProgress(dying, SCRIPT.commands)
    assert progress.take()
    progress.begin()
    # It has begun to crash the first, and is not heard of again.
    assert progress.advance(2)
    dying.close()
    said = carry_out(SCRIPT, address)
    assert said[:3] == ["% 2 of 5 commands were begun before, and are not repeated", "Wait 1", "Crash OP2 0"]
    assert crashed == ["OP2"]


def test_a_wait_that_was_cut_short_is_waited_again(address: str, crashed: list[str]) -> None:
    waiting = topology("Crash OP1 0", "Wait 600000", "Crash OP2 0")
    said = carry_out(waiting, address, lambda said: "Wait 600000" in said)
    assert said[-1] == "% the topology has ended: 1 command is left out"
    said = carry_out(waiting, address, lambda said: "Wait 600000" in said)
    assert said[0] == "% 1 of 3 commands were begun before, and are not repeated"
    assert crashed == ["OP1"]


def test_of_several_nodes_one_gives_the_commands(address: str, crashed: list[str]) -> None:
    said: list[str] = []
    nodes = [Scripted(SCRIPT, address, said.append) for _ in range(3)]
    for node in nodes:
        node.hold()
        node.begin()
    for node in nodes:
        assert node._thread is not None
        node._thread.join()
    assert crashed == ["OP1", "OP2"]
    assert said.count("Start OP1") == 1


def test_one_that_was_frozen_while_another_went_on_does_nothing_more() -> None:
    coordinator = MemoryCoordinator()
    frozen, other = (ScriptProgress(coordinator, SCRIPT.commands) for _ in range(2))
    frozen.begin()
    assert frozen.advance(1)
    assert other.begin().next == 1
    assert not frozen.advance(2)
    assert other.advance(2)


def test_a_replica_of_another_machine_is_crashed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator, killed = MemoryCoordinator(), list[int]()
    monkeypatch.setattr(script_target, "kill_process", killed.append)
    Roster(coordinator).join(Member("2", "local", "elsewhere", 77, "run"))
    two = Topology("t", chaos="allowed", replicas=2)
    here, there = (RunningTarget(two, coordinator, passes_on=True) for _ in range(2))
    here.crash("OP1", "2")
    here.crash_here()
    assert killed == []
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    there.crash_here()
    there.crash_here()
    assert killed == [77]
    # One that has been replaced meanwhile is another one.
    monkeypatch.undo()
    monkeypatch.setattr(script_target, "kill_process", killed.append)
    here.crash("OP1", "2")
    Roster(coordinator).leave("2")
    Roster(coordinator).join(Member("2", "local", "elsewhere", 78, "next"))
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    there.crash_here()
    assert killed == [77]


def test_a_replica_that_is_parked_is_not_waited_for() -> None:
    coordinator = MemoryCoordinator()
    roster = Roster(coordinator)
    target = RunningTarget(Topology("t", replicas=2), coordinator)
    roster.join(Member("1", "local", "here", 1, "run"))
    assert not target.is_up()
    assert target.is_up(patient=False)
    roster.tell("2", Told("run", how=PARKED, why="its file is wrong"))
    assert target.is_up()
