"""A node that is to restore a topology whose replicas are on several nodes looks first, and changes what is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.console import going_back as module
from penstock.console.calling import Calling
from penstock.console.desired import Beginning, Desired, Wanted
from penstock.console.home import ConsoleHome
from penstock.console.node_commands import NodeCommands
from penstock.console.nodes import Node, Nodes
from penstock.console.tended import Tended
from penstock.coordination.memory import MemoryCoordinator
from penstock.coordination.opening import open_coordinator
from penstock.errors import CommandRefused
from penstock.replication.roster import Member, Roster
from penstock.runtime.manifest import MANIFEST

WANTED = Wanted("t", "d", "topology.yaml", replicas=2, spread=True, nodes={"1": "n1", "2": "n2"}, fresh=4)


class OneNode:
    """The node n2, which sees what n1 has where they share a home."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        coordinator = MemoryCoordinator()
        self.home = ConsoleHome(folder)
        self.desired, self.nodes = Desired(coordinator), Nodes(coordinator)
        self.desired.add(WANTED)
        self.calling = Calling("n2", self.home)
        self.calls: list[list[str]] = []
        self.answer = (True, json.dumps({"epoch": 40, "notes": ["sink 'out' has come to epoch 80"]}))
        node = Node("n2", "here", 1, "0")
        self.nodes.join(node)
        self.commands = NodeCommands(node, self.nodes, self.calling, self.desired)
        for name in ("n1", "n2"):
            (self.home.nodes / name).mkdir(parents=True)
        (self.home.path / "spread").mkdir()

        def called(
            _: NodeCommands, command: Sequence[str], tended: Tended, verb: str, variables: Mapping[str, str]
        ) -> tuple[bool, str]:
            self.calls.append(list(command))
            return self.answer

        monkeypatch.setattr(NodeCommands, "_called", called)

    def keep(self, name: str, node: str = "n1") -> Path:
        """Have a node have a checkpoint."""
        checkpoint = self.calling.checkpoint(WANTED, node, name)
        checkpoint.mkdir(parents=True)
        (checkpoint / MANIFEST).write_text("{}")
        return checkpoint

    def do(self, verb: str, *words: str, seen: Wanted = WANTED) -> str:
        done, said = self.commands.carry_out(seen, Tended(self.home.topology("t", "n2")), verb, words)
        assert done
        return said

    @property
    def wanted(self) -> Wanted:
        found = self.desired.get("t")
        assert found is not None
        return found


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OneNode:
    return OneNode(tmp_path, monkeypatch)


def test_all_begin_with_the_checkpoint_of_whichever_node_has_it(node: OneNode) -> None:
    checkpoint = node.keep("kept")
    assert node.do("restore", "kept", "--replace", "--fresh-sinks").splitlines() == [
        "'t' goes back to epoch 40, on all nodes, when it starts", "note: sink 'out' has come to epoch 80"]
    ((_, _, _, verb, given, _, *options),) = node.calls
    assert (verb, given) == ("restore", str(checkpoint))
    assert options[-4:] == ["--replace", "--fresh-sinks", "--dry-run", "--json"]
    assert node.wanted.begins_with == Beginning(5, "n1", "kept", fresh_sinks=True)
    assert node.calling.share(node.wanted) == [
        "--share", "2@5", "--nodes", str(node.home.nodes), "--begin-with", str(checkpoint), "--fresh-sinks"]
    # Until it is begun anew: then with nothing.
    anew = replace(node.wanted, fresh=6)
    assert (anew.begins_with, node.calling.share(anew)[1:]) == (None, ["2@6", "--nodes", str(node.home.nodes)])


def test_what_cannot_be_restored_changes_nothing(node: OneNode) -> None:
    node.keep("kept")
    node.answer = (False, "the sinks of 't' cannot go on from epoch 40")
    with pytest.raises(CommandRefused, match="the sinks of 't' cannot go on"):
        node.do("restore", "kept", "--replace")
    assert node.wanted == WANTED


def test_one_that_nobody_has_is_refused_with_those_that_there_are(node: OneNode) -> None:
    node.keep("noon")
    node.keep("night", "n2")
    with pytest.raises(CommandRefused) as refused:
        node.do("restore", "kept", "--replace")
    assert str(refused.value) == (
        "node n2 sees no checkpoint 'kept' of 't': it sees night (node n2), noon (node n1)")
    (node.home.nodes / "n1" / "t").rename(node.home.path / "elsewhere")
    (node.home.nodes / "n1").rmdir()
    with pytest.raises(CommandRefused, match=r"it sees night \(node n2\); node n1, which may have it, is away"):
        node.do("restore", "kept", "--replace")


def test_nodes_that_could_not_begin_with_it_are_named(node: OneNode) -> None:
    node.keep("kept", "n2")
    (node.home.nodes / "n1").rmdir()
    with pytest.raises(CommandRefused, match="checkpoint 'kept' of 't' is on node n2, and n1 could not begin with it"):
        node.do("restore", "kept", "--replace")
    assert (node.wanted, node.calls) == (WANTED, [])


def test_two_of_one_name_are_refused_and_do_not_come_to_be(node: OneNode) -> None:
    node.keep("kept", "n1")
    with pytest.raises(CommandRefused, match="there is a checkpoint 'kept' of 't' already, on node n1"):
        node.do("checkpoint", "--name", "kept")
    node.do("checkpoint", "--name", "other")
    node.keep("kept", "n2")
    with pytest.raises(CommandRefused, match="nodes n1 and n2 each have a checkpoint 'kept'"):
        node.do("restore", "kept", "--replace")


def test_a_replica_that_still_runs_somewhere_is_named(node: OneNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.2)
    node.keep("kept")
    shared = open_coordinator(node.calling.shared_log(WANTED) or "")
    Roster(shared).join(Member("1", "local", "far", 41, "a"))
    with pytest.raises(CommandRefused, match=r"'t' still runs, .* replica 1 on node n1 \(process 41 on far\)"):
        node.do("restore", "kept", "--replace")
    assert (node.wanted, node.calls) == (WANTED, [])
    Roster(shared).leave("1")
    node.do("restore", "kept", "--replace")
    shared.close()


def test_of_two_that_are_looked_at_side_by_side_one_is_done(node: OneNode) -> None:
    node.keep("kept")
    node.do("restore", "kept", "--replace")
    with pytest.raises(CommandRefused, match="'t' was begun anew, or restored, meanwhile: nothing was done"):
        node.do("restore", "kept", "--replace")
    assert node.wanted.fresh == 5
    # Given after the first one, it is another.
    node.do("restore", "kept", "--replace", seen=node.wanted)
    assert node.wanted.fresh == 6
