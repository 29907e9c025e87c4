from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from penstock.control.script import ScriptRun, held_operators
from penstock.control.script_target import RunningTarget
from penstock.coordination.memory import MemoryCoordinator
from penstock.epochs.orders import Orders
from penstock.errors import CoordinationError
from penstock.replication.roster import Member, Roster, Told
from penstock.topology.model import Command, Topology


def commands(*lines: str) -> list[Command]:
    return [Command(verb, tuple(rest)) for verb, *rest in (line.split() for line in lines)]


@dataclass
class Noted:
    """Notes what it is told, and when."""

    now: float = 0.0
    said: list[tuple[float, str]] = field(default_factory=list)
    refused: str = ""
    given: list[float] = field(default_factory=list)
    """When there was nothing left but waiting."""

    def note(self, *words: object) -> None:
        text = " ".join(map(str, words))
        if self.refused and text.startswith(self.refused):
            raise CoordinationError("it is not there")
        self.said.append((round(self.now, 3), text))

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def hold(self, operators: Sequence[str]) -> None:
        self.note("hold", *operators)

    def start(self, operator: str) -> None:
        self.note("start", operator)

    def interval(self, operator: str, seconds: float) -> None:
        self.note("interval", operator, seconds)

    def status(self) -> Sequence[str]:
        return ["2/2 safe"]

    def crash(self, operator: str, replica: str) -> None:
        self.note("crash", operator, replica)

    def freeze(self, operator: str, replica: str) -> None:
        self.note("freeze", operator, replica)

    def unfreeze(self, operator: str, replica: str) -> None:
        self.note("unfreeze", operator, replica)


def run(target: Noted, *lines: str, ends_at: float = 1e9) -> tuple[list[str], int]:
    log: list[str] = []
    script = ScriptRun(
        commands(*lines), target, log.append, lambda: target.now >= ends_at, lambda: target.now, target.sleep,
        when_given=lambda: target.given.append(target.now))
    script.run()
    return log, script.failed


def test_only_wait_waits_and_replicas_count_from_zero() -> None:
    target = Noted()
    lines = ("Start OP1", "Interval OP1 500", "Freeze OP2 1", "Wait 1500", "Unfreeze OP2 1", "Crash OP3 0", "Status")
    log, failed = run(target, *lines)
    assert target.said == [
        (0, "start OP1"), (0, "interval OP1 0.5"), (0, "freeze OP2 2"), (1.5, "unfreeze OP2 2"), (1.5, "crash OP3 1")]
    assert log == [*lines, "% 2/2 safe"]
    assert failed == 0


def test_what_cannot_be_done_is_logged_and_the_next_follows() -> None:
    target = Noted(refused="crash")
    log, failed = run(target, "Crash OP1 0", "Start OP1")
    assert log == ["Crash OP1 0", "% not done: it is not there", "Start OP1"]
    assert failed == 1
    assert target.said == [(0, "start OP1")]


def test_the_end_of_the_topology_is_the_end_of_the_script() -> None:
    log, _ = run(Noted(), "Wait 60000", "Crash OP1 0", "Status", ends_at=2.0)
    assert log == ["Wait 60000", "% the topology has ended: 2 commands are left out"]


def test_waiting_at_the_end_is_waiting_for_nothing() -> None:
    target = Noted(refused="crash")
    run(target, "Wait 1000", "Crash OP1 0", "Wait 2000", "Wait 3000")
    assert (target.given, target.now) == ([1.0], pytest.approx(6.0))


def test_operators_wait_that_are_started_later() -> None:
    assert held_operators(commands("Status", "Start OP2", "Start OP1", "Start OP2", "Freeze OP3 0")) == ["OP2", "OP1"]


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    return MemoryCoordinator()


def test_an_operator_is_held_in_every_replica_until_it_is_started(coordinator: MemoryCoordinator) -> None:
    target, orders = RunningTarget(Topology("t", replicas=2), coordinator), Orders(coordinator)
    target.hold(["OP1", "OP2"])
    assert orders.frozen("1") == orders.frozen("2") == ("OP1", "OP2")
    target.start("OP1")
    assert orders.frozen("2") == ("OP2",)
    target.start("OP2")
    assert orders.frozen("1") == ()


def test_the_slowest_operator_decides_how_long_all_pause(coordinator: MemoryCoordinator) -> None:
    target = RunningTarget(Topology("t"), coordinator)
    target.interval("OP1", 0.5)
    # Another process.
    RunningTarget(Topology("t"), coordinator).interval("OP2", 0.1)
    assert Orders(coordinator).interval() == 0.5
    target.interval("OP1", 0.0)
    assert Orders(coordinator).interval() == 0.1


def test_replicas_that_are_not_there_and_crashes_that_are_not_allowed_are_refused(
    coordinator: MemoryCoordinator,
) -> None:
    target = RunningTarget(Topology("t", replicas=2), coordinator)
    with pytest.raises(CoordinationError, match="no replica 2: the topology has 2"):
        target.freeze("OP1", "3")
    with pytest.raises(CoordinationError, match="chaos: allowed"):
        target.crash("OP1", "1")
    target = RunningTarget(Topology("t", replicas=2, chaos="allowed"), coordinator)
    with pytest.raises(CoordinationError, match="replica 0 does not run now"):
        target.crash("OP1", "1")


def test_how_everything_is(coordinator: MemoryCoordinator) -> None:
    roster = Roster(coordinator)
    roster.join(Member("1", "local", "here", 1, "run"))
    roster.tell("1", Told("run", 7))
    assert RunningTarget(Topology("t", replicas=2), coordinator).status() == ["t: 1/1 safe", "replica 0: safe, epoch 7"]
