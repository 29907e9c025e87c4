"""A node that cannot do what is wanted says so, and goes on."""

from __future__ import annotations

from pathlib import Path

from penstock.console.bundle import contents, digest_of, pack
from penstock.console.desired import Desired, Wanted
from penstock.console.home import ConsoleHome
from penstock.console.node_supervisor import NodeSupervisor
from penstock.console.nodes import Node, Nodes
from penstock.coordination.memory import MemoryCoordinator


def test_a_disk_that_takes_nothing_is_told_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/topology.yaml").write_text("topology: t\n")
    packed = pack(tmp_path / "own")
    coordinator, home = MemoryCoordinator(), ConsoleHome(tmp_path / "home")
    digest = digest_of(contents(packed))
    Desired(coordinator).add(Wanted("t", digest, "topology.yaml", nodes={"1": "n"}))
    # Where a note would be written there is something else.
    (home.topology("t", "n").path / ".begun").mkdir(parents=True)
    node = NodeSupervisor(Node("n", "here", 1, "0"), home, coordinator, lambda _: packed)
    node.look()
    seen = Nodes(coordinator).told()["t"]["n"]
    assert (seen["how"], "Is a directory" in seen["why"]) == ("starting", True)
    # Not at once, but after a pause; and it does not count as a failure of the topology.
    tried = node._tended["t"].not_before
    node.look()
    assert node._tended["t"].not_before == tried > 0
    assert node._tended["t"].there.failures == 0
