"""On which node each replica of a topology runs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from penstock.console.desired import Wanted


def replica_names(wanted: Wanted) -> list[str]:
    return [str(number) for number in range(1, wanted.replicas + 1)]


def place(wanted: Wanted, nodes: Iterable[str], load: Mapping[str, int],
          lost: Collection[str] = ()) -> dict[str, str] | None:  # fmt: skip
    """By replica, its node; None when there is nothing to change, or no node.

    `lost` are the replicas whose node is away and that do not run any more.
    """
    placed = _each_alone(wanted, nodes, load, lost) if wanted.spread else _together(wanted, nodes, load)
    return None if placed is None or placed == wanted.nodes else placed


def _together(wanted: Wanted, nodes: Iterable[str], load: Mapping[str, int]) -> dict[str, str] | None:
    """All on the node that has the fewest: what they share is a file. They stay where their state is, also while that
    node is away."""
    names, alive = replica_names(wanted), sorted(nodes)
    homes = set(wanted.nodes.values())
    if homes:
        home = sorted(homes)[0]
    elif alive:
        home = min(alive, key=lambda node: (load.get(node, 0), node))
    else:
        return None
    return dict.fromkeys(names, home)


def _each_alone(wanted: Wanted, nodes: Iterable[str], load: Mapping[str, int],
                lost: Collection[str]) -> dict[str, str]:  # fmt: skip
    """No two on one node. One whose node is gone moves to one that has none; where there is none, it waits."""
    alive = sorted(nodes)
    placed = {name: wanted.nodes[name] for name in replica_names(wanted) if name in wanted.nodes}
    for name in replica_names(wanted):
        free = [node for node in alive if node not in placed.values()]
        if free and (name not in placed or (name in lost and placed[name] not in alive)):
            placed[name] = min(free, key=lambda node: (load.get(node, 0), node))
    return dict(sorted(placed.items(), key=lambda item: int(item[0])))


def load_of(all_wanted: Iterable[Wanted]) -> Counter[str]:
    """By node, how many replicas it has."""
    return Counter(node for wanted in all_wanted for node in wanted.nodes.values())
