"""How tests look, as a node does again and again."""

from __future__ import annotations

from penstock.console.node_supervisor import NodeSupervisor


def look_with_files(node: NodeSupervisor, name: str = "t") -> None:
    """Look, and where that has asked for files, once more when the answer is here."""
    node.look()
    if (fetching := node._tended[name].fetching) is not None:
        fetching[1].exception(30)
        node.look()
