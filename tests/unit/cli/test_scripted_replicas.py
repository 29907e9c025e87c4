"""The commands of a file, carried out while it runs, on replicas that only sign in."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.cli.scripted import scripted
from penstock.coordination.base import Coordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import Orders
from penstock.replication.roster import Member, Roster
from penstock.topology.model import Command, Topology

from ...waiting import PATIENCE_SECONDS, wait_until


def topology(*lines: str) -> Topology:
    commands = tuple(Command(verb, tuple(rest)) for verb, *rest in (line.split() for line in lines))
    return Topology("t", replicas=2, cells=("any",), chaos="allowed", commands=commands)


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/c.sqlite"


@pytest.fixture
def coordinator(address: str) -> Iterator[Coordinator]:
    opened = open_coordinator(address)
    yield opened
    opened.close()


def sign_in(coordinator: Coordinator, name: str) -> subprocess.Popen[bytes]:
    """A process that a command may kill."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    Roster(coordinator).join(Member(name, "local", socket.gethostname(), process.pid, f"run-{name}"))
    return process


def test_commands_are_carried_out_on_replicas_when_all_are_there(address: str, coordinator: Coordinator) -> None:
    said: list[str] = []
    orders = Orders(coordinator)
    with ExitStack() as stack:
        first = stack.enter_context(sign_in(coordinator, "1"))
        script = stack.enter_context(scripted(topology("Start OP1", "Crash OP1 1", "Freeze OP1 0", "Wait 900000"),
                                              address, said.append))  # fmt: skip
        script.hold()
        # Held in every replica until it is started, and the end until all is given.
        assert (orders.frozen("1"), orders.frozen("2"), orders.end_is_held()) == (("OP1",), ("OP1",), True)
        script.begin()
        assert said == [], "replica 1 of 2 is not there yet"
        second = stack.enter_context(sign_in(coordinator, "2"))
        assert second.wait(PATIENCE_SECONDS) == -9
        wait_until(lambda: not orders.end_is_held(), PATIENCE_SECONDS)
        assert (orders.frozen("1"), orders.frozen("2")) == (("OP1",), ())
        assert first.poll() is None
        # The end is let go when the last command is given, a moment before it is said that the rest is to wait.
        wait_until(lambda: "Wait 900000" in said, PATIENCE_SECONDS)
        script.end()
        first.kill()
    assert said == ["Start OP1", "Crash OP1 1", "Freeze OP1 0", "Wait 900000"]


def test_what_is_left_when_the_run_ends_is_left_out(address: str, coordinator: Coordinator) -> None:
    said: list[str] = []
    with scripted(topology("Status", "Crash OP1 0"), address, said.append) as script:
        script.hold()
        script.begin()
        # Its replicas never came up.
        script.end()
    assert said == ["% the topology has ended: 2 commands are left out"]
    assert not Orders(coordinator).end_is_held()


def test_without_commands_nobody_waits(address: str, coordinator: Coordinator) -> None:
    with scripted(topology(), address, print) as script:
        script.hold()
        script.begin()
        assert not Orders(coordinator).end_is_held()
