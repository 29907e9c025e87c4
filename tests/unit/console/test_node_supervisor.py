"""A node that cannot do what is wanted says so, and goes on."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.console import home as home_of_console
from penstock.console import node_supervisor
from penstock.console.audit import Audit
from penstock.console.bundle import contents, digest_of, pack
from penstock.console.calling import Calling
from penstock.console.desired import Desired, Goal, Wanted
from penstock.console.home import Begun, ConsoleHome
from penstock.console.metrics import metrics
from penstock.console.node_commands import NodeCommands
from penstock.console.node_supervisor import NodeSupervisor
from penstock.console.nodes import Node, Nodes, Task
from penstock.console.private_files import private, write_private
from penstock.console.summary import summary
from penstock.console.tended import Tended
from penstock.console.tending import There, begun_with
from penstock.console.tokens import Person, Role
from penstock.console.topology_log import shown_log
from penstock.console.watching import Watching
from penstock.control.replica_process import ReplicaProcess
from penstock.coordination.memory import MemoryCoordinator
from penstock.coordination.opening import open_coordinator
from penstock.epochs.orders import EVERYTHING, Orders
from penstock.errors import CoordinationError
from penstock.replication.replica import log_of
from penstock.replication.roster import ENDED, FROZEN, PARKED, Member, Roster, Told
from penstock.runtime.progress_file import ProgressFile
from penstock.runtime.state_folder import Committed, StateFolder

from ...waiting import wait_until
from .looking import look_with_files
from .made_up_processes import await_told, holder_of, times_told


def test_a_disk_that_takes_nothing_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(home_of_console, "write_private", full)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/topology.yaml").write_text("topology: t\n")
    packed = pack(tmp_path / "own")
    coordinator, home = MemoryCoordinator(), ConsoleHome(tmp_path / "home")
    digest = digest_of(contents(packed))
    Desired(coordinator).add(Wanted("t", digest, "topology.yaml", nodes={"1": "n"}))
    node = NodeSupervisor(Node("n", "here", 1, "0"), home, coordinator, lambda _: packed)
    look_with_files(node)
    seen = Nodes(coordinator).told()["t"]["n"]
    assert (seen["how"], "No space left on device" in seen["why"]) == ("starting", True)
    # Not at once, but after a pause; and it does not count as a failure of the topology.
    tried = node._tended["t"].not_before
    node.look()
    assert node._tended["t"].not_before == tried > 0
    assert node._tended["t"].there.failures == 0


def supervisor(tmp_path: Path, coordinator: MemoryCoordinator) -> NodeSupervisor:
    """A node that has a topology which is stopped."""
    Desired(coordinator).add(Wanted("t", "0" * 64, "topology.yaml", goal=Goal.STOP, nodes={"1": "n"}))
    return NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path), coordinator, lambda _: b"")


# Who watches its replicas is killed, or this supervisor alone.


def test_replicas_that_nobody_watches_end_when_their_topology_is_to_stop(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    with holder_of(node._home.topology("t", "n").state.replica("1")) as one:
        node.look()
        await_told(one)
        node.look()
        # So it is not removed either, as long as they run.
        assert nodes.told()["t"]["n"]["how"] == "stopping"
        # Gently: whoever is told twice does not finish its epoch.
        assert times_told(one) == 0
    node.look()
    assert nodes.told()["t"]["n"]["how"] == "stopped"


def test_replicas_that_nobody_watches_end_when_their_topology_was_removed(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    node = NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path), coordinator, lambda _: b"")
    with holder_of(node._home.topology("t", "n").state.replica("1")) as one:
        node.find()
        node.look()
        await_told(one)
        node.look()
        assert "t" in node._tended
        assert times_told(one) == 0
    node.look()
    assert "t" not in node._tended


def test_a_supervisor_that_was_killed_alone_is_followed_by_one_that_finds_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator()
    wanted = Desired(coordinator).add(Wanted("t", "d", "topology.yaml", replicas=2, nodes={"1": "n", "2": "n"}))
    place = ConsoleHome(tmp_path).topology("t", "n")
    place.note(begun_with(wanted, ()))
    place.state.path.mkdir(parents=True)
    place.state.record(Committed(epoch=7))
    monkeypatch.setattr(NodeSupervisor, "_start", lambda *_: pytest.fail("it was started a second time"))
    with ExitStack() as running:
        states = (place.state, place.state.replica("1"), place.state.replica("2"))
        watcher, *replicas = [running.enter_context(holder_of(state)) for state in states]
        following = NodeSupervisor(Node("n", "here", 2, "0"), ConsoleHome(tmp_path), coordinator, lambda _: b"")
        following.find()
        following.look()
        seen = Nodes(coordinator).told()["t"]["n"]
        assert (seen["how"], seen["epoch"]) == ("running", 7)
        # What is wanted is said to who watches them, and to them by nobody else.
        Desired(coordinator).change("t", lambda now: replace(now, goal=Goal.STOP))
        following.look()
        await_told(watcher)
        following.look()
        assert [times_told(each) for each in (watcher, *replicas)] == [0, 0, 0]


# One topology whose files cannot be read, and another one.


def two_topologies(tmp_path: Path, coordinator: MemoryCoordinator, goal: Goal = Goal.RUN) -> NodeSupervisor:
    """A node with topology `a`, and with `b`, which is stopped."""
    for name, each in (("a", goal), ("b", Goal.STOP)):
        Desired(coordinator).add(Wanted(name, "0" * 64, "topology.yaml", goal=each, nodes={"1": "n"}))
    return NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path), coordinator, lambda _: b"")


def damaged(node: NodeSupervisor, name: str) -> Path:
    """What a power cut leaves: the file is there, and what was written to it is not."""
    file = node._home.topology(name, "n").state.path / "committed"
    file.parent.mkdir(parents=True)
    file.write_text("")
    return file


def test_a_topology_whose_state_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = two_topologies(tmp_path, coordinator), Nodes(coordinator)
    said: list[str] = []
    node._say = said.append
    file = damaged(node, "a")
    nodes.give(Task("1", "n", "log", "b"))
    node.look()
    node.look()
    told = nodes.told()
    assert (told["a"]["n"]["how"], told["b"]["n"]["how"]) == ("failed", "stopped")
    assert f"{file} is damaged" in told["a"]["n"]["why"]
    assert (nodes.result("1") or pytest.fail("no answer")).done
    assert len(said) == 1, "it is said once"
    # As the message says.
    file.unlink()
    node._tended["a"].refused = "0" * 64
    node.look()
    assert nodes.told()["a"]["n"]["how"] == "starting"


def test_a_topology_that_runs_is_stopped_although_its_state_cannot_be_read(
    tmp_path: Path, watcher: subprocess.Popen[bytes]
) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = two_topologies(tmp_path, coordinator), Nodes(coordinator)
    Desired(coordinator).remove("b")
    file = damaged(node, "a")
    node.look()
    seen = nodes.told()["a"]["n"]
    assert (seen["how"], f"{file} is damaged" in seen["why"]) == ("starting", True)
    Desired(coordinator).change("a", lambda now: replace(now, goal=Goal.STOP))
    node.look()
    assert watcher.wait(10) < 0


def test_a_node_starts_although_it_cannot_be_seen_whether_a_topology_runs(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = two_topologies(tmp_path, coordinator), Nodes(coordinator)
    holder = node._home.topology("a", "n").state.path / "holder"
    holder.mkdir(parents=True)
    gone = node._home.topology("gone", "n").state.path / "holder"
    gone.mkdir(parents=True)
    node.find()
    node.look()
    told = nodes.told()
    assert (told["a"]["n"]["how"], told["a"]["n"]["why"]) == ("failed", f"node n: Is a directory: {holder}")
    assert told["b"]["n"]["how"] == "stopped"
    # It is not wanted, and may run: it is let go when it is seen that it does not.
    assert "gone" in node._tended
    gone.rmdir()
    node.look()
    assert "gone" not in node._tended


def test_what_cannot_be_told_of_a_topology_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = two_topologies(tmp_path, coordinator, Goal.STOP), Nodes(coordinator)
    secrets = node._home.topology("a", "n").path / "secrets"
    secrets.mkdir(parents=True)
    nodes.give(Task("1", "n", "log", "a"))
    monkeypatch.setattr(node_supervisor, "newest_progress", lambda place: place.secrets() and None)
    node.look()
    told = nodes.told()
    assert (told["a"]["n"]["why"], told["b"]["n"]["how"]) == (f"node n: Is a directory: {secrets}", "stopped")
    answer = nodes.result("1") or pytest.fail("no answer")
    assert (answer.done, answer.said) == (False, f"the log of 'a' cannot be told: Is a directory: {secrets}")


def test_a_command_is_carried_out_once_although_its_end_could_not_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    done: list[str] = []
    away = [True]

    def carry_out(self: NodeCommands, wanted: Wanted, tended: object, verb: str, words: object) -> tuple[bool, str]:
        done.append(verb)
        return True, "done"

    def finish(self: Nodes, task: Task, ended: bool, said: str) -> None:
        if away:
            away.pop()
            raise CoordinationError("away")
        told(self, task, ended, said)

    told = Nodes.finish
    monkeypatch.setattr(NodeCommands, "carry_out", carry_out)
    monkeypatch.setattr(Nodes, "finish", finish)
    nodes.give(Task("1", "n", "crash", "t"))
    wait_until(lambda: node.look() or nodes.result("1") is not None)
    node.look()
    assert done == ["crash"]


def test_questions_do_not_put_off_what_a_topology_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    asked, go_on = threading.Event(), threading.Event()

    def carry_out(self: NodeCommands, wanted: Wanted, tended: object, verb: str, words: object) -> tuple[bool, str]:
        if verb == "state":
            asked.set()
            go_on.wait()
        return True, verb

    monkeypatch.setattr(NodeCommands, "carry_out", carry_out)
    nodes.give(Task("1", "n", "state", "t", {"words": ["--json"]}))
    node.look()
    asked.wait()
    assert not node._tended["t"].busy
    nodes.give(Task("2", "n", "freeze", "t"))
    wait_until(lambda: node.look() or nodes.result("2") is not None)
    assert nodes.result("1") is None
    go_on.set()
    wait_until(lambda: nodes.result("1") is not None)


def test_a_question_that_nobody_waits_for_any_more_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    go_on, asked = threading.Event(), []

    def carry_out(self: NodeCommands, wanted: Wanted, tended: object, verb: str, words: Sequence[str]
                  ) -> tuple[bool, str]:  # fmt: skip
        asked.append(words[-1])
        go_on.wait(30)
        return True, words[-1]

    monkeypatch.setattr(NodeCommands, "carry_out", carry_out)
    for number in ("1", "2", "3"):
        nodes.give(Task(number, "n", "state", "t", {"words": ["--json", number]}))
    node.look()
    wait_until(lambda: asked)
    # As who has waited for long enough does.
    nodes.withdraw("n", "2")
    go_on.set()
    wait_until(lambda: nodes.result("3") is not None)
    assert asked == ["1", "3"]
    assert (nodes.result("2"), coordinator.list("console/begun/")) == (None, [])


def test_a_command_that_waits_for_another_one_can_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    go_on, done = threading.Event(), []

    def carry_out(self: NodeCommands, wanted: Wanted, tended: object, verb: str, words: object) -> tuple[bool, str]:
        done.append(verb)
        go_on.wait(30)
        return True, verb

    monkeypatch.setattr(NodeCommands, "carry_out", carry_out)
    tasks = [Task(str(number), "n", verb, "t") for number, verb in enumerate(("restart", "crash", "rescale"), 1)]
    for task in tasks:
        nodes.give(task)
    node.look()
    wait_until(lambda: done)
    taken_back = nodes.take_back(tasks[1], "a restart is going on")
    assert taken_back is not None
    assert (taken_back.done, taken_back.said.split(",")[0]) == (False, "a restart is going on")
    go_on.set()
    wait_until(lambda: node.look() or nodes.result("3"))
    assert done == ["restart", "rescale"]


def test_an_order_is_given_at_once_whatever_else_is_done(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    node.look()
    tended = node._tended["t"]
    # Something goes from replica to replica.
    tended.busy = True
    nodes.give(Task("1", "n", "freeze", "t", {"words": ["--replica", "1"]}))
    wait_until(lambda: node.look() or nodes.result("1") is not None)
    assert "has not run yet" in (nodes.result("1") or pytest.fail("no result")).said
    tended.place.state.path.mkdir(parents=True)
    nodes.give(Task("2", "n", "freeze", "t", {"words": ["--replica", "1"]}))
    wait_until(lambda: node.look() or nodes.result("2") is not None)
    assert (nodes.result("2") or pytest.fail("no result")).said == "t is frozen"
    own = open_coordinator(tended.place.state.coordinator_of("t", None))
    assert Orders(own).frozen("1") == (EVERYTHING,)
    own.close()


@pytest.mark.parametrize(("verb", "words", "waits"), [
    ("checkpoint", [], False),
    ("dead-letters", ["--discard"], False),
    # These hold the state, or start processes.
    ("dead-letters", ["--replay"], True),
    ("restore", ["a", "--replace"], True),
    ("rescale", ["kept=2"], True),
])  # fmt: skip
def test_a_kill_waits_for_no_command_that_it_cannot_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, words: list[str], waits: bool
) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    begun, go_on = threading.Event(), threading.Event()

    def carry_out(self: NodeCommands, wanted: Wanted, tended: object, given: str, words: object) -> tuple[bool, str]:
        if given == verb:
            begun.set()
            go_on.wait(30)
        return True, given

    monkeypatch.setattr(NodeCommands, "carry_out", carry_out)
    nodes.give(Task("1", "n", verb, "t", {"words": words}))
    node.look()
    assert begun.wait(10)
    nodes.give(Task("2", "n", "kill", "t"))
    node.look()
    if waits:
        node.look()
        assert "2" not in node._commands._taken
    else:
        wait_until(lambda: nodes.result("2") is not None)
        assert node._tended["t"].busy, "what was begun first goes on"
    assert nodes.result("1") is None
    go_on.set()
    wait_until(lambda: node.look() or (nodes.result("1") and nodes.result("2")))
    node._commands.close()


def test_it_is_told_which_operator_of_a_replica_is_frozen(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    Desired(coordinator).add(Wanted("t", "d", "topology.yaml", replicas=2, nodes={"1": "n", "2": "n"}))
    roster = Roster(coordinator)
    for name in ("1", "2"):
        roster.join(Member(name, "local", "here", 1, name))
        roster.tell(name, Told(name, epoch=7, how=FROZEN))
    Orders(coordinator).freeze("1", "split")
    Orders(coordinator).freeze("2")
    node = NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path), coordinator, lambda _: b"")
    tended = Tended(node._home.topology("t", "n"), coordinator=coordinator)
    tended.there = There(alive=True, epoch=7)
    (wanted,) = Desired(coordinator).all()
    node._report(wanted, tended)
    views = Nodes(coordinator).told()["t"]["n"]["replicas"]
    assert [(view["phase"], view["why"]) for view in views] == [("frozen", "split is frozen"), ("frozen", "")]


def test_a_task_wakes_the_node_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    # Only a task has it look a second time.
    monkeypatch.setattr(node_supervisor, "LOOK_SECONDS", 600.0)
    running = threading.Thread(target=node.run)
    running.start()
    wait_until(lambda: nodes.told().get("t"))
    nodes.give(Task("1", "n", "freeze", "t", {"words": []}))
    wait_until(lambda: nodes.result("1"))
    node.stop()
    running.join(10)
    assert not running.is_alive()


def test_what_has_not_changed_is_not_told_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_supervisor, "_REPEAT_SECONDS", 600.0)
    coordinator = MemoryCoordinator()
    node, nodes = supervisor(tmp_path, coordinator), Nodes(coordinator)
    node.look()
    first = nodes.told()["t"]["n"]["at"]
    node.look()
    assert nodes.told()["t"]["n"]["at"] == first
    place = node._tended["t"].place
    place.path.mkdir(parents=True)
    progress = {"epoch": 1, "lag": 0, "late": 0, "tuples": {}, "delivered": {}, "failed": {}}
    ProgressFile(place.progress).write(progress)
    node.look()
    told = nodes.told()["t"]["n"]
    assert (told["at"] > first, told["progress"]["epoch"]) == (True, 1)


def test_what_is_told_again_does_not_depend_on_the_time_of_day(tmp_path: Path) -> None:
    tended = Tended(ConsoleHome(tmp_path).topology("t", "n"))
    # Then the clock was set back by an hour, or forward.
    for at in (5000.0, -2200.0):
        tended.note_told({"how": "running", "at": at})
        assert not tended.is_news({"how": "running", "at": 1400.0}, 600.0)
        tended.told_at -= 600.0
        assert tended.is_news({"how": "running", "at": 1400.0}, 600.0)


SLEEPING = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Whoever watches the replicas of a topology that runs."""
    process = subprocess.Popen(SLEEPING)
    monkeypatch.setattr(StateFolder, "running", lambda _: process.pid)
    yield process
    process.kill()
    process.wait()


def renewing(tmp_path: Path, coordinator: MemoryCoordinator) -> NodeSupervisor:
    """A node with two replicas of an old version, where another one is wanted."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/topology.yaml").write_text("topology: t\n")
    packed = pack(tmp_path / "own")
    digest, home = digest_of(contents(packed)), ConsoleHome(tmp_path / "home")
    Desired(coordinator).add(Wanted("t", digest, "topology.yaml", replicas=2, nodes={"1": "n", "2": "n"}))
    home.topology("t", "n").work.mkdir(parents=True)
    home.topology("t", "n").note(Begun("old", "topology.yaml"))
    return NodeSupervisor(Node("n", "here", 1, "0"), home, coordinator, lambda _: packed)


def test_a_version_that_was_not_put_in_place_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watcher: subprocess.Popen[bytes]
) -> None:
    node = renewing(tmp_path, MemoryCoordinator())
    outcomes = [(False, "replica 2 does not come up"), (True, "all are safe")]

    def called(
        self: NodeCommands, command: Sequence[str], tended: Tended, verb: str, variables: Mapping[str, str]
    ) -> tuple[bool, str]:
        assert (verb, command[3]) == ("restart", "restart")
        return outcomes.pop(0)

    monkeypatch.setattr(NodeCommands, "_called", called)
    look_with_files(node)
    tended = node._tended["t"]
    wait_until(lambda: not tended.busy)
    assert tended.place.begun().digest == "old"
    assert "does not come up" in tended.trouble
    # Not at once.
    node.look()
    assert not tended.busy
    tended.not_before = 0.0
    look_with_files(node)
    wait_until(lambda: not tended.busy)
    assert (tended.place.begun().digest == "old", tended.trouble, outcomes) == (False, "", [])
    node.look()
    assert not tended.busy


def test_who_is_to_stop_is_not_put_off_by_a_change_that_goes_from_replica_to_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watcher: subprocess.Popen[bytes]
) -> None:
    coordinator = MemoryCoordinator()
    node = renewing(tmp_path, coordinator)
    monkeypatch.setattr(Calling, "line", lambda *_: list(SLEEPING))
    look_with_files(node)
    tended = node._tended["t"]
    wait_until(lambda: tended.rolling is not None)
    Desired(coordinator).change("t", lambda now: replace(now, goal=Goal.STOP))
    wait_until(lambda: node.look() or tended.there.stopping)
    assert watcher.wait(10) < 0


def test_with_other_values_it_is_stopped_and_started(tmp_path: Path, watcher: subprocess.Popen[bytes]) -> None:
    coordinator = MemoryCoordinator()
    node = renewing(tmp_path, coordinator)
    Desired(coordinator).change("t", lambda now: replace(now, sets=("epoch.interval=2s",)))
    node.look()
    assert watcher.wait(10) < 0
    assert node._tended["t"].there.stopping


def test_files_that_nobody_has_yet_are_asked_for_again_but_not_at_every_look(tmp_path: Path) -> None:
    coordinator, asked, said = MemoryCoordinator(), 0, []
    Desired(coordinator).add(Wanted("t", "0" * 64, "topology.yaml", nodes={"1": "n"}))

    def fetch(wanted: str) -> bytes:
        nonlocal asked
        asked += 1
        raise OSError("no master is there to ask")

    node = NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path / "home"), coordinator, fetch, said.append)
    look_with_files(node)
    node.look()
    assert asked == 1
    node._tended["t"].not_before = 0.0
    look_with_files(node)
    assert asked == 2
    assert said == ["t: its files could not be had: no master is there to ask"]


def test_a_node_looks_after_the_others_while_it_waits_for_files(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = two_topologies(tmp_path, coordinator), Nodes(coordinator)
    answer = threading.Event()
    asked: list[str] = []

    def fetch(wanted: str) -> bytes:
        asked.append(wanted)
        answer.wait(30)
        raise OSError("a master says nothing")

    node._fetch = fetch
    nodes.give(Task("1", "n", "log", "b"))
    looking = threading.Thread(target=lambda: (node.look(), node.look()), daemon=True)
    looking.start()
    looking.join(10)
    waited = looking.is_alive()
    told = nodes.told()
    node._wake.clear()
    answer.set()
    assert not waited
    assert (told["a"]["n"]["how"], told["b"]["n"]["how"], len(asked)) == ("starting", "stopped", 1)
    assert (nodes.result("1") or pytest.fail("no answer")).done
    assert node._wake.wait(10), "it looks when the answer is here"
    node.look()
    assert nodes.told()["a"]["n"]["why"] == "its files could not be had: a master says nothing"


def test_files_that_are_not_those_that_were_submitted_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/topology.yaml").write_text("topology: t\n")
    digest = digest_of(contents(pack(tmp_path / "own")))
    (tmp_path / "own/topology.yaml").write_text("topology: t\n# and something else\n")
    others = pack(tmp_path / "own")
    coordinator, fetched = MemoryCoordinator(), []
    Desired(coordinator).add(Wanted("t", digest, "topology.yaml", nodes={"1": "n"}))

    def fetch(wanted: str) -> bytes:
        fetched.append(wanted)
        return others

    node = NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path / "home"), coordinator, fetch)
    look_with_files(node)
    node.look()
    seen = Nodes(coordinator).told()["t"]["n"]
    assert (seen["how"], seen["why"]) == (
        "starting", "its files could not be had: its files are not those that were submitted: submit it once more")
    assert fetched == [digest], "it does not get better by itself"
    tended = node._tended["t"]
    assert (tended.process, tended.place.work.exists()) == (None, False)


def test_replicas_that_differ_are_told(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    Desired(coordinator).add(Wanted("t", "d", "topology.yaml", replicas=2, nodes={"1": "n", "2": "n"}))
    roster = Roster(coordinator)
    for name, digest in (("1", "a"), ("2", "b")):
        roster.join(Member(name, "local", "here", 1, name))
        roster.tell(name, Told(name, epoch=7))
        roster.compare(name, "v", 7, {"own": "own"}, {"own": digest})
    node = NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path), coordinator, lambda _: b"")
    tended = Tended(node._home.topology("t", "n"), coordinator=coordinator)
    tended.there = There(alive=True, epoch=7)
    (wanted,) = Desired(coordinator).all()
    node._report(wanted, tended)
    watching = Watching(coordinator)
    watching.look()
    (told,) = watching.all()
    assert summary(told)["divergence"].startswith("replicas 1 and 2 differ in epoch 7, first in 'own'")
    assert 'penstock_diverged{topology="t"} 1.0' in metrics([told], 1, True)
    watching.write_events(leading=True)
    assert watching.events()[-1].words.startswith("replicas 1 and 2 differ in epoch 7, first in 'own'")
    # It has ended, and they differ all the same.
    tended.there = There(alive=False, epoch=7)
    node._report(wanted, tended)
    watching.look()
    assert summary(told)["divergence"].startswith("replicas 1 and 2 differ in epoch 7")


def test_replicas_that_are_started_again_have_not_differed_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Calling, "line", lambda *_: [sys.executable, "-c", ""])
    node = renewing(tmp_path, MemoryCoordinator())
    (wanted,), tended = node._desired.all(), Tended(node._home.topology("t", "n"), divergence="replicas 1 and 2 differ")
    wait_until(lambda: node._start(wanted, tended) or tended.process is not None)
    assert tended.process is not None
    tended.process.wait()
    assert tended.divergence == ""


# What was set may be a password.

SECRET = "hunter22"
VARIABLE = "PENSTOCK_TEST_PASSWORD"


def failing(tmp_path: Path, coordinator: MemoryCoordinator) -> NodeSupervisor:
    """A node whose topology says what was set for it, and fails."""
    sets = (f"sinks.db.sql=postgresql://ann:{SECRET}@db",)
    Desired(coordinator).add(Wanted("t", "d", "topology.yaml", sets, nodes={"1": "n"}))
    place = ConsoleHome(tmp_path).topology("t", "n")
    place.work.mkdir(parents=True)
    place.note(Begun("d", "topology.yaml", sets))
    place.log.write_text(f"cannot log in to postgresql://ann:{SECRET}@db\nthe password {SECRET} is wrong\n")
    node = NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path), coordinator, lambda _: b"")
    ended = subprocess.Popen([sys.executable, "-c", "raise SystemExit(2)"])
    ended.wait()
    # It was seen to run before it ended.
    node._tended["t"] = Tended(place, There(place.begun(), alive=True), ended)
    return node


def test_what_was_set_is_neither_in_states_nor_in_events_nor_in_logs_nor_in_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = failing(tmp_path, coordinator), Nodes(coordinator)
    node.look()
    watching = Watching(coordinator)
    watching.look()
    watching.write_events(leading=True)
    (told,) = watching.all()
    assert (told.seen or {})["why"] == "cannot log in to …\nthe password … is wrong"
    (event,) = watching.events()
    assert event.words == "has failed and is not started again: the password … is wrong"

    monkeypatch.setattr(NodeCommands, "_called", lambda *_: (False, f"no such user: {SECRET}"))
    nodes.give(Task("1", "n", "checkpoint", "t"))
    nodes.give(Task("2", "n", "log", "t"))
    wait_until(lambda: node.look() or (nodes.result("1") and nodes.result("2")))
    answer, log = nodes.result("1"), nodes.result("2")
    assert answer is not None
    assert log is not None
    assert (answer.said, log.said) == ("no such user: …", "cannot log in to …\nthe password … is wrong\n")


def test_rows_are_told_as_they_are_and_words_without_what_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator()
    node = failing(tmp_path, coordinator)
    (wanted,), tended = Desired(coordinator).all(), node._tended["t"]

    def said(verb: str, text: str, *words: str, done: bool = True) -> str:
        monkeypatch.setattr(NodeCommands, "_called", lambda *_: (done, text))
        return node._commands.carry_out(wanted, tended, verb, words)[1]

    row = json.dumps({"name": SECRET, "epoch": 5})
    assert said("checkpoint", row, "--json", "--list") == row
    assert said("state", row, "--json") == row
    letter = {"id": "0", "what": SECRET, "error": f"{SECRET} is wrong"}
    assert json.loads(said("dead-letters", json.dumps(letter), "--json")) == letter | {"error": "… is wrong"}
    # An error, and what a command says that was given.
    assert said("state", f"{SECRET} is wrong", "--json", done=False) == "… is wrong"
    assert said("checkpoint", f"taken as {SECRET}", "--name", SECRET) == "taken as …"


def test_what_was_set_is_not_in_why_a_replica_is_parked(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator()
    Desired(coordinator).add(Wanted("t", "d", "topology.yaml", ("a=new-secret",), replicas=2, nodes={"1": "n"}))
    roster = Roster(coordinator)
    node = NodeSupervisor(Node("n", "here", 1, "0"), ConsoleHome(tmp_path), coordinator, lambda _: b"")
    tended = Tended(node._home.topology("t", "n"), coordinator=coordinator)
    tended.place.note(Begun(sets=(f"a={SECRET}",)))
    tended.there = There(tended.place.begun(), alive=True, epoch=7)
    (wanted,) = Desired(coordinator).all()
    watching = Watching(coordinator)
    roster.tell("2", Told("2", epoch=7))
    for how in (ENDED, PARKED):
        roster.tell("1", Told("1", epoch=7, how=how, why=f"neither {SECRET} nor new-secret is right"))
        node._report(wanted, tended)
        watching.look()
    (told,) = watching.all()
    assert (told.seen or {})["replicas"][0]["why"] == "neither … nor … is right"
    watching.write_events(leading=True)
    assert "replica 1 is parked: neither … nor … is right" in [event.words for event in watching.events()]


def test_what_stands_for_a_variable_is_known_before_it_can_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = f"import os; print('the password', os.environ['{VARIABLE}'], 'is wrong'); raise SystemExit(2)"
    monkeypatch.setattr(Calling, "line", lambda *_: [sys.executable, "-c", says])
    monkeypatch.setenv(VARIABLE, SECRET)
    coordinator = MemoryCoordinator()
    node = renewing(tmp_path, coordinator)
    wanted = Desired(coordinator).change("t", lambda now: replace(now, replicas=1, variables=(VARIABLE, "NOT_SET")))
    tended = Tended(node._home.topology("t", "n"))
    wait_until(lambda: node._start(wanted, tended) or tended.process is not None)
    assert tended.process is not None
    tended.process.wait()
    # This supervisor's successor has another value.
    monkeypatch.setenv(VARIABLE, "something-else")
    assert shown_log(tended.place, None, ()) == "the password … is wrong\n"
    node._see(tended)
    assert tended.why == "the password … is wrong"


def test_a_version_that_is_put_in_place_of_another_has_its_values_hidden_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator()
    node = failing(tmp_path, coordinator)
    monkeypatch.setenv(VARIABLE, "swordfish")
    tended = node._tended["t"]
    wanted = Desired(coordinator).change("t", lambda now: replace(now, variables=(VARIABLE,)))
    monkeypatch.setattr(NodeCommands, "_called", lambda *_: (False, f"known: {' '.join(tended.place.secrets())}"))
    assert node._commands.carry_out(wanted, tended, "restart", ())[1] == f"known: sinks.db.sql=… {VARIABLE}=…"


def test_a_version_whose_files_are_not_here_is_not_taken_for_one_that_was_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator()
    node = failing(tmp_path, coordinator)
    tended = node._tended["t"]
    before = tended.place.begun()
    wanted = Desired(coordinator).change("t", lambda now: replace(now, digest="9" * 64))
    monkeypatch.setattr(NodeCommands, "_called", lambda *_: pytest.fail("it was restarted"))
    done, said = node._commands.carry_out(wanted, tended, "restart", ())
    assert (done, "the files of version 999999999999 are not here yet" in said) == (False, True)
    assert tended.place.begun() == before


def test_values_from_before_are_hidden_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = MemoryCoordinator()
    node, nodes = failing(tmp_path, coordinator), Nodes(coordinator)
    tended = node._tended["t"]
    # Another version was submitted, without a value.
    wanted = Desired(coordinator).change("t", lambda now: replace(now, sets=()))
    tended.place.note(Begun("e", "topology.yaml"))
    nodes.give(Task("1", "n", "log", "t"))
    wait_until(lambda: node.look() or nodes.result("1"))
    assert (nodes.result("1") or pytest.fail("no answer")).said == "cannot log in to …\nthe password … is wrong\n"
    letter = {"id": "0", "what": "a row", "error": f"{SECRET} is wrong"}
    monkeypatch.setattr(NodeCommands, "_called", lambda *_: (True, json.dumps(letter)))
    said = node._commands.carry_out(wanted, tended, "dead-letters", ["--json"])[1]
    assert json.loads(said)["error"] == "… is wrong"


def test_files_in_which_it_may_stand_are_for_their_owner(tmp_path: Path) -> None:
    home = ConsoleHome(tmp_path / "home")
    before = os.umask(0o022)
    try:
        home.make_private("zookeeper://elsewhere")
        assert not home.path.exists()
        home.make_private(home.coordinator)
        coordinator = open_coordinator(home.coordinator)
        coordinator.put("a", SECRET)
        home.keep_bundle("0" * 64, b"")
        place = home.topology("t", "n")
        place.note(Begun(sets=(f"a={SECRET}",)))
        assert place.secrets() == (f"a={SECRET}",)
        Audit(home.audit).note(Person("ann", Role.OPERATOR), "", "stop", "t")
        # One that others could read until now.
        place.log.write_text("line\n")
        open(place.log, "ab", opener=private).close()
        ReplicaProcess.start([sys.executable, "-c", ""], place.path / "replica.log")
    finally:
        os.umask(before)
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.path.rglob("*") if path.is_file()}
    coordinator.close()
    assert {"console.sqlite", "console.sqlite-wal", "begun", "run.log", "audit.jsonl", "replica.log"} <= set(files)
    assert set(files.values()) == {0o600}, files


def test_two_who_write_the_same_file_at_once_both_do(tmp_path: Path) -> None:
    path, together = tmp_path / "bundle.zip", threading.Barrier(2)
    contents_of = [bytes([number]) * 1_000_000 for number in (1, 2)]

    def write(content: bytes) -> None:
        for _ in range(30):
            together.wait(30)
            write_private(path, content)

    with ThreadPoolExecutor(2) as writing:
        for done in [writing.submit(write, content) for content in contents_of]:
            done.result()
    assert path.read_bytes() in contents_of
    assert [each.name for each in tmp_path.iterdir()] == ["bundle.zip"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_log_of_each_replica_is_cut_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.console.topology_log._LONGEST_LOG", 1000)
    coordinator, home = MemoryCoordinator(), ConsoleHome(tmp_path)
    Desired(coordinator).add(Wanted("t", "0" * 64, "topology.yaml", replicas=2, goal=Goal.STOP, nodes={"1": "n"}))
    place = home.topology("t", "n")
    logs = [place.log, *(log_of(place.state.replica(name)) for name in ("1", "2"))]
    for log, lines in zip(logs, (300, 300, 3), strict=True):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("line\n" * lines)
    NodeSupervisor(Node("n", "here", 1, "0"), home, coordinator, lambda _: b"").look()
    assert [log.stat().st_size for log in logs] == [0, 0, 15]
    assert [log.with_name(f"{log.name}.1").exists() for log in logs] == [True, True, False]
