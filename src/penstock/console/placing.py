"""On which node each replica of a topology runs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from penstock.console.desired import Wanted


def replica_names(wanted: Wanted) -> list[str]:
    return [str(number) for number in range(1, wanted.replicas + 1)]


def place(wanted: Wanted, nodes: Iterable[str], load: Mapping[str, int]) -> dict[str, str] | None:
    """By replica, its node; None when there is nothing to change, or no node.

    All replicas of a topology are together, on the node that has the fewest: what they share is a file. A topology
    stays where its state is, also while that node is away.
    """
    names, alive = replica_names(wanted), sorted(nodes)
    homes = set(wanted.nodes.values())
    if homes:
        home = sorted(homes)[0]
    elif alive:
        home = min(alive, key=lambda node: (load.get(node, 0), node))
    else:
        return None
    placed = dict.fromkeys(names, home)
    return None if placed == wanted.nodes else placed


def load_of(all_wanted: Iterable[Wanted]) -> Counter[str]:
    """By node, how many replicas it has."""
    return Counter(node for wanted in all_wanted for node in wanted.nodes.values())
