"""What is wanted is changed by one at a time, and stays wanted."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.console.calling import Calling
from penstock.console.desired import Beginning, Desired, Goal, Wanted
from penstock.console.home import ConsoleHome
from penstock.console.nodes import Node, Nodes, NodeTaken, Task
from penstock.console.tending import Act, There, begun_with, decide
from penstock.coordination.memory import MemoryCoordinator
from penstock.errors import CommandRefused, ConsoleError

COUNT = Wanted("count", "abc", "topology.yaml", ("replicas=2",), 2)


@pytest.fixture
def desired() -> Desired:
    return Desired(MemoryCoordinator())


def test_what_was_added_is_found(desired: Desired) -> None:
    desired.add(COUNT)
    assert desired.get("count") == COUNT
    assert desired.all() == [COUNT]
    assert desired.get("other") is None


def test_with_what_it_begins_is_found(desired: Desired) -> None:
    back = replace(COUNT, fresh=3, beginning=Beginning(3, "n1", "kept", True))
    desired.add(back)
    assert desired.get("count") == back
    assert back.begins_with == Beginning(3, "n1", "kept", True)


def test_the_same_name_twice_is_refused(desired: Desired) -> None:
    desired.add(COUNT)
    with pytest.raises(CommandRefused, match="--replace"):
        desired.add(replace(COUNT, digest="other"))
    assert desired.get("count") == COUNT


def test_one_that_was_removed_goes_on_with_its_history(desired: Desired) -> None:
    calling = Calling("n", ConsoleHome(Path("home")))
    spread = replace(COUNT, spread=True, nodes={"1": "n", "2": "m"})
    desired.add(spread)
    desired.change("count", lambda wanted: replace(wanted, fresh=2))
    for _ in range(2):
        desired.remove("count")
        # The log that its nodes share is of history 2, and refuses whoever comes with one before.
        assert calling.share(desired.add(spread))[:2] == ["--share", "1@2"]
    desired.remove("count")
    assert desired.add(replace(spread, fresh=1)).fresh == 3
    assert desired.add(replace(COUNT, name="other")).fresh == 0


def test_one_that_was_removed_starts_when_it_is_submitted_again_also_where_it_had_ended(desired: Desired) -> None:
    first = desired.add(COUNT)
    ended = There(begun_with(first, ()), ended=True)
    assert decide(first, ended, now=0.0) is Act.NOTHING
    for _ in range(2):
        desired.remove("count")
        again = desired.add(COUNT)
        assert decide(again, ended, now=0.0) is Act.START
        ended = There(begun_with(again, ()), ended=True)
        assert decide(again, ended, now=0.0) is Act.NOTHING


def test_a_change_for_nothing_is_refused_with_what_there_is(desired: Desired) -> None:
    desired.add(COUNT)
    with pytest.raises(CommandRefused, match="the topologies are: count") as refused:
        desired.change("sum", lambda wanted: wanted)
    assert refused.value.missing


def test_of_many_changes_at_once_none_is_lost(desired: Desired) -> None:
    desired.add(COUNT)

    def begin_anew() -> None:
        for _ in range(20):
            desired.change("count", lambda wanted: replace(wanted, fresh=wanted.fresh + 1))

    threads = [threading.Thread(target=begin_anew) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = desired.get("count")
    assert found is not None
    assert (found.fresh, found.generation) == (80, 80)


def test_a_goal_survives_its_way_through_the_coordinator(desired: Desired) -> None:
    desired.add(COUNT)
    stopped = desired.change("count", lambda wanted: replace(wanted, goal=Goal.STOP, nodes={"1": "a"}))
    assert desired.get("count") == stopped
    assert stopped.goal is Goal.STOP


def test_a_node_is_there_once() -> None:
    coordinator = MemoryCoordinator()
    nodes = Nodes(coordinator)
    nodes.join(Node("a", "here", 1, "0.1"))
    with pytest.raises(NodeTaken, match="another --name"):
        nodes.join(Node("a", "there", 2, "0.1"))


@pytest.mark.parametrize("name", ["../../x", "a/b", "", ".", "..", ".hidden", "-x", "a b", "a\nb", "x" * 101])
def test_a_node_whose_name_leads_elsewhere_does_not_join(name: str) -> None:
    nodes = Nodes(MemoryCoordinator())
    with pytest.raises(ConsoleError, match="give it a --name of at most 100 letters"):
        nodes.join(Node(name, "here", 1, "0.1"))
    assert nodes.alive() == {}
    for usual in ("a", "node-1.example.com", "_", "X" * 100):
        nodes.join(Node(usual, "here", 1, "0.1"))
    assert nodes.alive()["a"].process == 1


def test_a_task_is_begun_once_and_its_result_is_kept() -> None:
    nodes = Nodes(MemoryCoordinator())
    task = Task("0001", "a", "kill", "count")
    nodes.give(task)
    nodes.give(task)
    assert nodes.tasks("a") == [task]
    assert nodes.tasks("b") == []
    assert nodes.begin(task, "first start")
    assert nodes.begin(task, "first start")
    assert not nodes.begin(task, "second start")
    nodes.finish(task, True, "killed")
    assert nodes.tasks("a") == []
    result = nodes.result("0001")
    assert result is not None
    assert (result.done, result.said) == (True, "killed")


def test_a_task_is_taken_back_unless_it_is_begun_or_done(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(MemoryCoordinator())
    unseen, begun, done = (Task(f"000000000{number}.5-abc", "a", "kill", "count") for number in range(3))
    for task in (unseen, begun, done):
        nodes.give(task)
    nodes.begin(begun, "a start")
    nodes.finish(done, True, "killed")
    answers = [nodes.take_back(task, "node a does not answer") for task in (unseen, begun, done)]
    assert [answer and (answer.done, answer.said.split(",")[0]) for answer in answers] == [
        (False, "node a does not answer"), None, (True, "killed")]
    assert nodes.tasks("a") == [begun]
    assert [nodes.is_taken_back(task) for task in (unseen, begun)] == [True, False]
    # It is remembered for as long as a node may be at it still.
    nodes.forget_old_results()
    assert not nodes.is_taken_back(unseen)
    assert not nodes.begin(begun, "another start")


def test_what_nodes_see_is_kept_by_topology() -> None:
    nodes = Nodes(MemoryCoordinator())
    nodes.tell("a", "count", {"epoch": 3})
    nodes.tell("b", "count", {"epoch": 2})
    assert nodes.told() == {"count": {"a": {"epoch": 3}, "b": {"epoch": 2}}}
    nodes.forget("count")
    assert nodes.told() == {}
