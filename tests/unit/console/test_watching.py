"""What a master makes of what nodes say, whatever their clocks say."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from penstock.console.desired import Desired, Goal, Wanted
from penstock.console.keeping import Keepers
from penstock.console.master import Candidate, Master
from penstock.console.metrics import metrics
from penstock.console.nodes import Node, Nodes
from penstock.console.seen import SILENT_SECONDS
from penstock.console.summary import summary
from penstock.console.watching import RECENT_SECONDS, Watching
from penstock.coordination.memory import MemoryCoordinator
from penstock.errors import CommandRefused, CoordinationError

from ...waiting import wait_until
from .running_console import view

SPREAD = Wanted("t", "d", "f", replicas=2, spread=True, nodes={"1": "a", "2": "b"})


@dataclass
class Machines:
    """A master, and nodes whose clocks are wrong by so many seconds; time passes when it is told to."""

    wrong: dict[str, float]
    now: float = 1000.0
    coordinator: MemoryCoordinator = field(default_factory=MemoryCoordinator)

    def __post_init__(self) -> None:
        self.watching = Watching(self.coordinator, lambda: self.now)
        Desired(self.coordinator).add(SPREAD)
        for name in self.wrong:
            Nodes(self.coordinator).join(Node(name, name, 1, "0"))

    def pass_seconds(self, seconds: float, says: dict[str, list[dict[str, Any]]], per_second: int = 100) -> None:
        """Those who say something do so twice a second, by their clocks."""
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            for node, replicas in says.items():
                epoch = int(self.now * 2)
                progress = {"epoch": epoch, "tuples": {"ticks": int(self.now * per_second)}, "delivered": {}, "lag": 0,
                            "late": 0, "failed": {}}  # fmt: skip
                Nodes(self.coordinator).tell(node, "t", {
                    "how": "running", "why": "", "epoch": epoch, "at": self.now + self.wrong[node],
                    "replicas": replicas, "safety": "", "progress": progress, "busy": False})  # fmt: skip
            self.watching.look()

    @property
    def lost(self) -> set[str]:
        return self.watching.lost(SPREAD)

    @property
    def away(self) -> bool:
        watched = self.watching.get("t")
        assert watched is not None
        return watched.away


    def lose_the_coordinator(self, seconds: float) -> None:
        """It is away, and a master looks every second."""
        self.coordinator.store.go_away()
        for _ in range(int(seconds)):
            self.now += 1.0
            with pytest.raises(CoordinationError):
                self.watching.look()
        self.coordinator.store.come_back()


BOTH = [view("1"), view("2")]
ONE_GONE = [view("1", "down"), view("2")]
WRONG = [{"a": 600.0, "b": 0.0}, {"a": 0.0, "b": 600.0}, {"a": -600.0, "b": 600.0}, {"a": 0.0, "b": -600.0}]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_node_is_lost_by_its_silence_and_not_by_its_clock(wrong: dict[str, float]) -> None:
    machines = Machines(wrong)
    machines.pass_seconds(10, {"a": BOTH, "b": BOTH})
    assert (machines.away, machines.lost) == (False, set())
    # One falls silent, and the other sees that its replica is gone.
    machines.pass_seconds(10, {"b": ONE_GONE})
    assert (machines.away, machines.lost) == (False, {"1"})
    machines.pass_seconds(10, {})
    assert (machines.away, machines.lost) == (True, set())
    machines.pass_seconds(1, {"a": BOTH})
    assert not machines.away


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_replica_of_a_node_that_is_lost_moves_whatever_the_clocks_say(wrong: dict[str, float]) -> None:
    machines = Machines(wrong)
    master = Master(machines.coordinator, Candidate("m", "", "0", 1))
    master.watching = machines.watching
    machines.pass_seconds(10, {"a": BOTH, "b": BOTH})
    machines.coordinator.delete("console/nodes/a")
    Nodes(machines.coordinator).join(Node("c", "c", 1, "0"))
    machines.pass_seconds(10, {"b": ONE_GONE})
    master.place_all()
    wanted = Desired(machines.coordinator).get("t")
    assert wanted is not None
    assert wanted.nodes == {"1": "c", "2": "b"}


def test_while_the_coordinator_is_away_nobody_says_that_a_node_is() -> None:
    machines = Machines({"a": 0.0, "b": 0.0})
    machines.pass_seconds(10, {"a": BOTH, "b": BOTH})
    watched = machines.watching.get("t")
    assert watched is not None
    machines.lose_the_coordinator(60)
    assert not watched.away
    assert 'penstock_up{topology="t"} 1.0' in metrics([watched], 2, True)
    assert summary(watched)["how"] == "running"
    # Nor at the first look after it, when they have not said anything yet.
    machines.watching.look()
    assert (machines.away, machines.lost) == (False, set())
    machines.pass_seconds(0.5, {"a": BOTH, "b": BOTH})
    assert watched.seen is not None
    assert watched.seen["told"] == machines.now, "what is told then is taken in"
    # Who does not come back is away as soon as ever.
    machines.lose_the_coordinator(60)
    machines.pass_seconds(SILENT_SECONDS, {})
    assert not machines.away
    machines.pass_seconds(1, {})
    assert machines.away


def test_a_report_that_makes_no_sense_hides_no_other() -> None:
    machines = Machines({"a": 0.0})
    Desired(machines.coordinator).add(replace(SPREAD, name="odd"))
    odd = {"how": "running", "epoch": 1, "at": 1.0, "replicas": [], "safety": "", "progress": {"event": "progress"}}
    Nodes(machines.coordinator).tell("a", "odd", odd)
    machines.pass_seconds(1, {"a": BOTH})
    assert not machines.away
    assert machines.watching.odd == {"what is told of 'odd' makes no sense: KeyError: 'tuples'"}


def test_whatever_goes_wrong_who_leads_goes_on_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    master = Master(MemoryCoordinator(), Candidate("m", "", "0", 1), said.append)
    monkeypatch.setattr(master.watching, "look_unless_recent", lambda *_: 1 / 0)
    master.start()
    try:
        wait_until(lambda: len(said) > 1)
    finally:
        master.stop()
    assert said[0] == "the master's look failed: ZeroDivisionError: division by zero"


def paused_ones(coordinator: MemoryCoordinator, **goals: Goal) -> tuple[Desired, Master]:
    """A master that has looked at topologies with these goals."""
    desired = Desired(coordinator)
    for name, goal in goals.items():
        desired.add(Wanted(name, "d", "f", goal=goal))
    master = Master(coordinator, Candidate("m", "", "0", 1))
    master.watching.look()
    return desired, master


def test_who_leads_resumes_what_is_paused_and_nothing_else() -> None:
    desired, master = paused_ones(MemoryCoordinator(), left=Goal.PAUSE, stopped=Goal.PAUSE, own=Goal.RUN)
    # Since that look.
    desired.change("stopped", lambda now: replace(now, goal=Goal.STOP))
    with master.pausing("own"):
        master.watching.look()
        master._resume()
        assert {each.name: each.goal for each in desired.all()} == {
            "left": Goal.RUN, "stopped": Goal.STOP, "own": Goal.PAUSE}
    assert (desired.get("own") or SPREAD).goal is Goal.RUN


def test_what_was_paused_when_the_coordinator_went_away_runs_again_when_it_is_back() -> None:
    coordinator = MemoryCoordinator()
    desired, master = paused_ones(coordinator, t=Goal.RUN)
    master.start()
    try:
        wait_until(lambda: master.leading)
        with master.pausing("t"):
            wait_until(lambda: [each.goal for each in master.watching.wanted()] == [Goal.PAUSE])
            coordinator.store.go_away()
        # It leads as before, and no other does.
        coordinator.store.come_back()
        wait_until(lambda: (desired.get("t") or SPREAD).goal is Goal.RUN)
    finally:
        coordinator.store.come_back()
        master.stop()


def test_what_a_killed_master_has_left_is_forgotten_and_one_that_lives_says_it_again() -> None:
    coordinator = MemoryCoordinator()
    master = Master(coordinator, Candidate("m", "", "0", 1))
    for name in ("m", "killed"):
        coordinator.put(f"console/masters/{name}", "{}")
        Keepers(coordinator).tell(name, {"a"})
    master._election.campaign()
    try:
        wait_until(lambda: master._election.candidates() == ["m"])
        master._forget_the_dead()
        # It may have just started.
        assert len(coordinator.list("console/masters/")) == 2
        master._forget_the_dead()
        assert coordinator.list("console/masters/") == ["console/masters/m"]
        assert (Keepers(coordinator).of("m"), Keepers(coordinator).of("killed")) == ({"a"}, set())
    finally:
        master.stop()
    # Frozen for so long that another one took it for dead.
    master = Master(coordinator, Candidate("m", "", "0", 1))
    master.start()
    try:
        wait_until(lambda: coordinator.list("console/masters/"))
        coordinator.delete("console/masters/m")
        wait_until(lambda: coordinator.list("console/masters/"))
    finally:
        master.stop()


def test_only_what_is_to_run_is_paused_and_for_one_thing_at_a_time() -> None:
    desired, master = paused_ones(MemoryCoordinator(), stopped=Goal.STOP, paused=Goal.PAUSE, own=Goal.RUN)
    for name, why in (("stopped", "was stopped meanwhile"), ("paused", "something else is being done")):
        before = desired.get(name)
        with pytest.raises(CommandRefused, match=why), master.pausing(name):
            pytest.fail("it was paused")
        assert desired.get(name) == before
    with master.pausing("own"):
        with pytest.raises(CommandRefused, match="something else is being done"), master.pausing("own"):
            pytest.fail("it was paused twice")
        assert (desired.get("own") or SPREAD).goal is Goal.PAUSE
        master.watching.look()
        master._resume()
        assert (desired.get("own") or SPREAD).goal is Goal.PAUSE, "the first one is at it still"


def test_rates_are_by_the_clock_of_who_counts() -> None:
    machines = Machines({"a": 600.0, "b": -600.0})

    def rate() -> float:
        watched = machines.watching.get("t")
        assert watched is not None
        return watched.rates["ticks"]

    machines.pass_seconds(10, {"a": BOTH, "b": BOTH})
    assert rate() == pytest.approx(100)
    # Another one tells; the first is gone.
    machines.pass_seconds(8, {"b": BOTH})
    assert rate() == pytest.approx(100)
    machines.wrong["b"] = -1200.0
    machines.pass_seconds(0.5, {"b": BOTH})
    assert rate() == pytest.approx(100)
    machines.pass_seconds(1, {"b": BOTH})
    assert rate() == pytest.approx(100)


def test_one_that_is_not_spread_loses_nothing() -> None:
    machines = Machines({"a": 0.0})
    machines.pass_seconds(1, {"a": ONE_GONE})
    assert machines.watching.lost(replace(SPREAD, spread=False)) == set()


@pytest.mark.parametrize("answers", [True, False])
def test_who_has_waited_for_a_slow_look_does_not_look_again(answers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    machines, looks = Machines({}), list[float]()

    def slow(key: str) -> None:
        looks.append(machines.now)
        machines.now += 4.0
        if not answers:
            raise CoordinationError("away")

    monkeypatch.setattr(machines.coordinator, "get", slow)
    for _ in range(3):
        with suppress(CoordinationError):
            machines.watching.look_unless_recent()
    assert looks == [1000.0]
    machines.now += RECENT_SECONDS
    with suppress(CoordinationError):
        machines.watching.look_unless_recent()
    assert looks == [1000.0, 1004.0 + RECENT_SECONDS]
