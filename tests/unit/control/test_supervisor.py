"""The supervisor with replicas that only say how far they are: real processes, which are killed."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from penstock import Topology
from penstock.connectors.base import Place
from penstock.connectors.file_sink import FileSink
from penstock.control.precedence import BEHIND, Precedence
from penstock.control.replica_process import ReplicaProcess
from penstock.control.supervisor import Supervisor, _Slot
from penstock.errors import CoordinationError
from penstock.replication.lifecycle import Action, Head, Phase, Sight, decide
from penstock.replication.replica import ReplicaPlace, opened_roster
from penstock.replication.roster import Member, Roster, Told
from penstock.replication.version import version_of
from penstock.replication.views import ReplicaView, views_of
from penstock.runtime.state_folder import Committed, StateFolder, UnusableState

from ...waiting import wait_until

REPLICA = """
import os, socket, sys, time, uuid
from pathlib import Path
from penstock.replication.replica import opened_roster
from penstock.replication.roster import FAILED, Member, Told

address, folder, began = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
name = sys.argv[sys.argv.index("--replica") + 1]
cell = sys.argv[sys.argv.index("--cell") + 1]
with (folder / f"cells-{name}").open("a") as cells:
    print(cell, file=cells)
if (folder / f"sick-{cell}").exists():
    sys.exit(1)
starts = folder / f"starts-{name}"
starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
run = uuid.uuid4().hex
time.sleep(1.0)
with opened_roster(address) as roster:
    if (folder / f"broken-{name}").exists():
        roster.tell(name, Told(run, how=FAILED, why="its file is wrong"))
        sys.exit(2)
    slow = folder / f"slow-{name}"
    while slow.exists() and not slow.read_text():
        time.sleep(0.05)
    roster.join(Member(name, cell, socket.gethostname(), os.getpid(), run))
    while slow.exists():
        time.sleep(0.05)
    while True:
        roster.tell(name, Told(run, int((time.time() - began) * 10) + 1))
        time.sleep(0.05)
"""
SECONDS = 60.0


class Watched:
    def __init__(self, folder: Path, cells: tuple[str, ...] = ("any",)) -> None:
        self._folder = folder
        made = Topology("pair", replicas=2, cells=cells).source("words", rows=[], schema="word string")
        topology = made.count("word").sink("out", file="out.jsonl").with_folder(folder)
        place = ReplicaPlace(StateFolder(folder / "state"))
        (folder / "replica.py").write_text(REPLICA)
        command = [sys.executable, str(folder / "replica.py"), place.home.coordinator, str(folder), str(time.time())]
        self.views: list[ReplicaView] = []
        self.said: list[str] = []
        self.times_safe = 0
        self._supervisor = Supervisor(topology, place, command, when_safe=self._all_safe)
        self._supervisor.start(False, self.said.append)
        self._thread = threading.Thread(target=self._supervisor.watch, args=[self._look])
        self._thread.start()

    def _look(self, progress: object, views: list[ReplicaView]) -> None:
        self.views = views

    def _all_safe(self) -> None:
        self.times_safe += 1

    def starts(self, name: str) -> int:
        return len((self._folder / f"starts-{name}").read_text())

    def cells(self, name: str) -> list[str]:
        """Where it was started, one time after the other."""
        return (self._folder / f"cells-{name}").read_text().split()

    def process(self, name: str) -> int | None:
        member = self._supervisor._roster.members().get(name)
        return None if member is None else member.process

    def until(self, *phases: Phase) -> None:
        wait_until(lambda: [view.phase for view in self.views] == list(phases), SECONDS)

    def end(self) -> None:
        self._supervisor.stop()
        self._thread.join()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    made.end()


def process_of(watched: Watched, name: str) -> int:
    found = watched.process(name)
    assert found is not None
    return found


def seen_from_outside(watched: Watched) -> list[ReplicaView]:
    roster = watched._supervisor._roster
    return views_of(roster.members(), roster.told())


@pytest.mark.parametrize("fresh", [True, False])
def test_a_topology_that_has_ended_or_is_to_begin_anew_does(tmp_path: Path, fresh: bool) -> None:
    made = Topology("pair", replicas=2, cells=("any",)).source("words", rows=[], schema="word string")
    topology = made.sink("out", file="out.jsonl").with_folder(tmp_path)
    place = ReplicaPlace(StateFolder(tmp_path / "state"))
    for _ in range(2):
        supervisor = Supervisor(topology, place, ["true"])
        assert supervisor.start(fresh) == 0
        # Its coordinator, a file among what is cleared, is that of the replicas, too.
        with opened_roster(place.coordinator(topology, None)) as roster:
            assert roster.version() == version_of(topology)
        supervisor._resources.close()
        place.home.record(Committed(epoch=7, ended=True))


@pytest.mark.parametrize(("committed", "fresh", "unlike"), [
    (Committed(7), False, True), (Committed(7), True, False), (Committed(7, ended=True), False, False)])
def test_what_replicas_remember_differs_until_all_begin_anew(
    tmp_path: Path, committed: Committed, fresh: bool, unlike: bool
) -> None:
    made = Topology("pair", replicas=2, cells=("any",)).source("words", rows=[], schema="word string")
    topology = made.sink("out", file="out.jsonl").with_folder(tmp_path)
    place = ReplicaPlace(StateFolder(tmp_path / "state"))
    supervisor = Supervisor(topology, place, ["true"])
    supervisor.start(False)
    for name in ("1", "2"):
        supervisor._roster.compare(name, version_of(topology), 7, {"a": "a"}, {"a": f"0:{name}"})
    supervisor._resources.close()
    place.home.record(committed)
    again = Supervisor(topology, place, ["true"])
    again.start(fresh)
    assert (again._roster.are_unlike(), again._roster.divergence()) == (unlike, None)
    again._resources.close()


def test_a_replica_that_follows_is_raised_when_the_one_ahead_gets_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[int, ...]] = []
    monkeypatch.setattr("penstock.control.supervisor.can_be_raised", lambda: True)
    made = Topology("pair", replicas=2, cells=("any",)).source("words", rows=[], schema="word string")
    topology = made.sink("out", file="out.jsonl").with_folder(tmp_path)
    times = iter((10.1, 11.0, 11.6, 12.0))
    place = ReplicaPlace(StateFolder(tmp_path / "state"))
    supervisor = Supervisor(topology, place, ["true"], clock=lambda: next(times))
    supervisor._precedence = Precedence(lambda *one: not done.append(one), lambda *one: not done.append(one))
    sight = Sight(alive=True, epoch=5, took=0.2, caught_up=True)
    supervisor._slots = [_Slot(name, "any", ReplicaProcess(process), sight) for name, process in (("1", 11), ("2", 22))]
    supervisor._head = Head(5, moved=10.0, took=1.0)
    supervisor._paces.append(1.0)
    for _ in range(4):
        supervisor._put_in_order()
    assert done == [(22, BEHIND), (22,)]


class Clocked:
    """A supervisor that looks when it is told to, at replicas that are told how far they are."""

    def __init__(self, folder: Path) -> None:
        made = Topology("pair", replicas=2, cells=("any",)).source("words", rows=[], schema="word string")
        topology = made.sink("out", file="out.jsonl").with_folder(folder)
        self.is_away = False
        self._now = 1000.0
        self._epochs = {"1": 0, "2": 0}
        place = ReplicaPlace(StateFolder(folder / "state"))
        self._supervisor = Supervisor(topology, place, ["true"], clock=lambda: self._now)
        self._supervisor._roster = SimpleNamespace(  # type: ignore[assignment]
            members=self._members, told=self._told, version=lambda: None)
        process, sight = ReplicaProcess(os.getpid()), Sight(alive=True)
        self._supervisor._slots = [_Slot(name, "any", process, sight, run=name) for name in self._epochs]

    def decided(self, seconds: float, **done: int) -> list[Action]:
        """What to do with each, so many seconds later; `_1=7`: by then the first has done epoch 7."""
        self._now += seconds
        self._epochs.update({name.removeprefix("_"): epoch for name, epoch in done.items()})
        self._supervisor._look_around()
        return [decide(slot.sight, self._supervisor._head, self._now) for slot in self._supervisor._slots]

    def _members(self) -> dict[str, Member]:
        if self.is_away:
            raise CoordinationError("nobody answers")
        return {name: Member(name, "any", socket.gethostname(), os.getpid(), name) for name in self._epochs}

    def _told(self) -> dict[str, Told]:
        return {name: Told(name, epoch, progress={"wholes_ms": [400.0]}) for name, epoch in self._epochs.items()}


@pytest.fixture
def clocked(tmp_path: Path) -> Clocked:
    return Clocked(tmp_path)


def test_one_is_stuck_after_some_seconds_also_when_there_was_nothing_to_do_for_hours_before(clocked: Clocked) -> None:
    decided = clocked.decided
    left_alone = [Action.NOTHING, Action.NOTHING]
    assert decided(1.0, _1=1, _2=1) == left_alone
    # Hours later one of them is a moment slower.
    assert decided(7200.0, _1=2) == left_alone
    assert decided(1.0, _2=2) == left_alone
    assert decided(1.0, _1=3) == left_alone
    assert decided(9.0, _1=4) == left_alone
    assert decided(2.0) == [Action.NOTHING, Action.KILL]


def test_one_is_not_stuck_that_cannot_say_how_far_it_is(clocked: Clocked) -> None:
    left_alone = [Action.NOTHING, Action.NOTHING]
    assert clocked.decided(1.0, _1=1, _2=1) == left_alone
    assert clocked.decided(1.0, _1=2) == left_alone
    clocked.is_away = True
    assert clocked.decided(60.0, _2=2) == left_alone
    clocked.is_away = False
    assert clocked.decided(1.0, _1=3) == left_alone


def test_when_all_are_signed_out_at_once_they_may_sign_in_again(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine stood still for longer than their sessions last: nobody is killed for it."""
    watched.until(Phase.SAFE, Phase.SAFE)
    asked = []
    real = watched._supervisor._roster.members

    def members() -> dict[str, Member]:
        asked.append("members")
        # The first is back a while before the second.
        return {name: member for name, member in real().items() if len(asked) > 5 and name == "1"}

    with monkeypatch.context() as patch:
        patch.setattr(watched._supervisor._roster, "members", members)
        wait_until(lambda: len(asked) > 15, SECONDS)
    watched.until(Phase.SAFE, Phase.SAFE)
    assert (watched.starts("1"), watched.starts("2")) == (1, 1)
    assert not any("gives no sign of life" in line for line in watched.said)


def test_the_only_one_that_delivers_may_sign_in_again(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not its sibling has signed in already: that one could not go on for it."""
    watched.until(Phase.SAFE, Phase.SAFE)
    (tmp_path / "slow-2").touch()
    os.killpg(process_of(watched, "2"), signal.SIGKILL)
    watched.until(Phase.SAFE, Phase.STARTING)
    real = watched._supervisor._roster.members
    asked: list[str] = []

    def members() -> dict[str, Member]:
        asked.append("members")
        return {name: member for name, member in real().items() if name != "1"}

    wait_until(lambda: "2" not in real(), SECONDS)
    for sibling_signs_in in (False, True):
        if sibling_signs_in:
            (tmp_path / "slow-2").write_text("signs in, and does no epoch")
            wait_until(lambda: "2" in real(), SECONDS)
        asked.clear()
        with monkeypatch.context() as patch:
            patch.setattr(watched._supervisor._roster, "members", members)
            # Half a second long; on a busy machine longer, but not as long as nobody may be silent.
            wait_until(lambda: len(asked) > 5, SECONDS)
        wait_until(lambda: watched._supervisor._slots[0].sight.registered, SECONDS)
    assert watched.starts("1") == 1
    assert not any("gives no sign of life" in line for line in watched.said)


def test_the_only_one_is_replaced_when_it_does_not_come_back(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.until(Phase.SAFE, Phase.SAFE)
    (tmp_path / "slow-2").touch()
    os.killpg(process_of(watched, "2"), signal.SIGKILL)
    watched.until(Phase.SAFE, Phase.STARTING)
    frozen = process_of(watched, "1")
    monkeypatch.setattr("penstock.control.supervisor._ALL_SILENT_SECONDS", 1.0)
    os.kill(frozen, signal.SIGSTOP)
    wait_until(lambda: watched.starts("1") == 2, SECONDS)
    assert sum("replica 1 gives no sign of life" in line for line in watched.said) == 1
    (tmp_path / "slow-2").unlink()
    watched.until(Phase.SAFE, Phase.SAFE)


def test_a_replica_that_is_killed_is_replaced_once(watched: Watched) -> None:
    watched.until(Phase.SAFE, Phase.SAFE)
    killed = process_of(watched, "1")
    os.killpg(killed, signal.SIGKILL)
    wait_until(lambda: watched.views[0].phase is not Phase.SAFE, SECONDS)
    watched.until(Phase.SAFE, Phase.SAFE)
    assert process_of(watched, "1") != killed
    # What the first one has said is not held against the second.
    assert (watched.starts("1"), watched.starts("2")) == (2, 1)
    assert watched.times_safe == 1
    assert "replica 1 has ended: it was killed by signal 9" in watched.said


def test_one_that_signs_in_late_is_found_and_watched_though_another_was_started_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its supervisor was killed before it had signed in."""
    (tmp_path / "slow-1").touch()
    first = Watched(tmp_path)
    wait_until(lambda: (tmp_path / "starts-1").exists(), SECONDS)
    # As if it was killed: they go on, and nobody looks after them any more.
    monkeypatch.setattr(first._supervisor, "_stop_all", lambda: None)
    first.end()
    orphan, other = (slot.process for slot in first._supervisor._slots)
    assert orphan is not None and other is not None
    other.kill()
    second = Watched(tmp_path)
    try:
        wait_until(lambda: second.starts("1") == 2, SECONDS)
        member = Member("1", "any", socket.gethostname(), orphan.process, "the first")
        roster = second._supervisor._roster
        roster.join(member)
        roster.tell("1", Told("the first", 10**9))
        wait_until(lambda: second.views[0].phase is Phase.SAFE, SECONDS)
        assert second.starts("1") == 2
        assert f"replica 1 is running already: process {orphan.process}" in second.said
        assert not any("parked" in line for line in second.said)
        # From now on it is one of its own.
        os.killpg(orphan.process, signal.SIGKILL)
        roster.leave("1")
        wait_until(lambda: second.starts("1") == 3, SECONDS)
    finally:
        second.end()


def staged_by(replica: str, folder: Path) -> Path:
    """Rows that wait for their commit."""
    sink = FileSink.configure(Place("pair", "out", folder, replica), {"file": "out.jsonl"})
    staged = sink.stage(iter([pa.RecordBatch.from_pydict({"line": ["{}\n"]})]))
    return Path(staged.detail["part"])


def test_what_is_staged_when_nobody_runs_is_thrown_away(tmp_path: Path) -> None:
    part = staged_by("2", tmp_path)
    Watched(tmp_path).end()
    assert not part.exists()


def test_while_the_coordinator_is_away_nobody_is_started_or_blamed(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.until(Phase.SAFE, Phase.SAFE)
    asked = 0

    def away() -> dict[str, Member]:
        nonlocal asked
        asked += 1
        raise CoordinationError("nobody answers")

    with monkeypatch.context() as patch:
        killed = process_of(watched, "1")
        patch.setattr(watched._supervisor._roster, "members", away)
        os.killpg(killed, signal.SIGKILL)
        watched.until(Phase.DOWN, Phase.SAFE)
        seen = asked
        wait_until(lambda: asked > seen + 10, SECONDS)
        assert watched.starts("1") == 1
        assert watched._supervisor._slots[0].sight.failures == 0
    watched.until(Phase.SAFE, Phase.SAFE)
    assert (watched.starts("1"), watched.starts("2")) == (2, 1)


def test_one_that_will_not_start_is_parked_with_its_reason_until_there_is_a_new_version(
    watched: Watched, tmp_path: Path
) -> None:
    watched.until(Phase.SAFE, Phase.SAFE)
    parts = {name: staged_by(name, tmp_path) for name in ("1", "2")}
    for name in ("1", "2"):
        watched._supervisor._log.note_progress(name, 7)
    (tmp_path / "broken-2").touch()
    os.killpg(process_of(watched, "2"), signal.SIGKILL)
    watched.until(Phase.SAFE, Phase.PARKED)
    assert watched.views[1].why == "its file is wrong"
    assert "replica 2 is parked: its file is wrong" in watched.said
    # Whoever looks from outside sees it, too.
    wait_until(lambda: [view.phase for view in seen_from_outside(watched)] == [Phase.SAFE, Phase.PARKED], SECONDS)
    assert seen_from_outside(watched)[1].why == "its file is wrong"
    # It holds nothing back, and leaves nothing behind; what a sibling is at work with stays.
    wait_until(lambda: list(watched._supervisor._log.progress()) == ["1"], SECONDS)
    wait_until(lambda: not parts["2"].exists(), SECONDS)
    assert parts["1"].exists()
    (tmp_path / "broken-2").unlink()
    watched._supervisor._roster.open_to_new_version()
    watched.until(Phase.SAFE, Phase.SAFE)
    wait_until(lambda: [view.phase for view in seen_from_outside(watched)] == [Phase.SAFE, Phase.SAFE], SECONDS)


def differ(roster: Roster, version: str, epoch: int) -> None:
    """Replicas of that version, which takes the place of another one, differ in two epochs."""
    roster.open_to_new_version()
    roster.agree_on(version)
    for each in (epoch, epoch + 1):
        for name in ("1", "2"):
            roster.compare(name, version, each, {"own": "own"}, {"own": name})


def test_that_replicas_differ_is_told_once_of_each_version(watched: Watched) -> None:
    watched.until(Phase.SAFE, Phase.SAFE)

    def told() -> list[str]:
        return [said.partition(",")[0] for said in watched.said if "differ in epoch" in said]

    differ(watched._supervisor._roster, "first", 10)
    wait_until(lambda: bool(told()), SECONDS)
    differ(watched._supervisor._roster, "second", 20)
    wait_until(lambda: len(told()) > 1, SECONDS)
    assert told() == ["replicas 1 and 2 differ in epoch 10", "replicas 1 and 2 differ in epoch 20"]


def replaced(watched: Watched, name: str) -> None:
    """Killed, and safe again."""
    killed = process_of(watched, name)
    os.killpg(killed, signal.SIGKILL)
    wait_until(lambda: watched.process(name) not in (None, killed), SECONDS)
    watched.until(Phase.SAFE, Phase.SAFE)


def test_a_cell_in_which_a_replica_failed_twice_is_avoided_until_it_may_have_healed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, ("a", "b", "c"))
    try:
        watched.until(Phase.SAFE, Phase.SAFE)
        (tmp_path / "sick-a").touch()
        replaced(watched, "1")
        # A kill may be chance; the second failure is put down to the cell, and no sibling is in the next one.
        assert watched.cells("1") == ["a", "a", "c"]
        replaced(watched, "1")
        assert watched.cells("1") == ["a", "a", "c", "c"]
        (tmp_path / "sick-a").unlink()
        monkeypatch.setattr("penstock.control.supervisor.HEALING_SECONDS", 0.0)
        replaced(watched, "1")
        assert watched.cells("1") == ["a", "a", "c", "c", "a"]
        assert watched.cells("2") == ["b"]
    finally:
        watched.end()


def test_one_that_cannot_be_started_is_parked_with_its_reason_and_the_others_run(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk takes nothing any more, not even its log."""
    watched.until(Phase.SAFE, Phase.SAFE)
    monkeypatch.setattr("penstock.control.supervisor._SECONDS_AFTER_A_START_IN_VAIN", 0.2)
    logs = tmp_path / "state/replicas/2/logs"
    logs.rename(logs.with_name("before"))
    logs.write_text("no folder")
    os.killpg(process_of(watched, "2"), signal.SIGKILL)
    watched.until(Phase.SAFE, Phase.PARKED)
    assert watched.views[1].why.startswith("it cannot be started: [Errno 17] File exists: ")
    assert sum("replica 2: it cannot be started" in line for line in watched.said) == 4
    assert (watched.starts("1"), watched.starts("2")) == (1, 1)


def test_one_that_could_not_be_started_for_a_moment_is_started(watched: Watched, tmp_path: Path) -> None:
    watched.until(Phase.SAFE, Phase.SAFE)
    logs = tmp_path / "state/replicas/2/logs"
    logs.rename(logs.with_name("before"))
    logs.write_text("no folder")
    os.killpg(process_of(watched, "2"), signal.SIGKILL)
    wait_until(lambda: any("cannot be started" in line for line in watched.said), SECONDS)
    logs.unlink()
    watched.until(Phase.SAFE, Phase.SAFE)
    assert (watched.starts("1"), watched.starts("2")) == (1, 2)


def sick_disk(folder: Path) -> Path:
    """Of replica 2; the first has come to epoch 7."""
    state = StateFolder(folder / "state")
    state.replica("1").path.mkdir(parents=True)
    state.replica("1").record(Committed(7))
    state.replica("2").path.write_text("no folder")
    return state.replica("2").path


def test_the_others_start_while_the_disk_of_one_fails(tmp_path: Path) -> None:
    sick_disk(tmp_path)
    part = staged_by("2", tmp_path)
    watched = Watched(tmp_path)
    try:
        watched.until(Phase.SAFE, Phase.DOWN)
        assert watched.views[1].why.startswith("it cannot be started: ")
        # Nobody can tell whether it is still at work.
        assert part.exists()
    finally:
        watched.end()


def test_nothing_begins_anew_while_a_replica_cannot_be_cleared(tmp_path: Path) -> None:
    sick = sick_disk(tmp_path)
    made = Topology("pair", replicas=2, cells=("any",)).source("words", rows=[], schema="word string")
    topology = made.sink("out", file="out.jsonl").with_folder(tmp_path)
    place = ReplicaPlace(StateFolder(tmp_path / "state"))
    with pytest.raises(UnusableState, match="replicas/2 cannot be used for state: File exists"):
        Supervisor(topology, place, ["true"]).start(True)
    assert (sick.read_text(), place.home.furthest().committed()) == ("no folder", Committed(7))
