"""Names: what they may be made of, and that no two streams or sinks share one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.errors import TopologyError
from penstock.topology.model import Case, Location, Operator, Sink, Source, Topology
from penstock.topology.problems import Problem
from penstock.topology.values import check_name

Node = Source | Operator | Sink | Case


def check_names(topology: Topology) -> Iterator[Problem]:
    """Names that cannot be used, and names used twice.

    Sources and operators share one space, because both are read by their name; sinks and tests have
    their own.
    """
    yield from _unusable(topology.name, "the topology", topology.where)
    for node in nodes_of(topology):
        yield from _unusable(node.name, f"this {role_of(node)}", node.where)
    for operator in topology.operators:
        for port in filter(None, operator.output_ports()):
            yield from _unusable(port, f"a port of operator '{operator.name}'", operator.where)
    yield from _duplicates((*topology.sources, *topology.operators))
    yield from _duplicates(topology.sinks)
    yield from _duplicates(topology.tests)


def nodes_of(topology: Topology) -> tuple[Source | Operator | Sink, ...]:
    return (*topology.sources, *topology.operators, *topology.sinks)


def role_of(node: Node) -> str:
    """What a node is called in messages."""
    match node:
        case Source():
            return "source"
        case Operator():
            return "operator"
        case Sink():
            return "sink"
        case Case():
            return "test"


def _unusable(name: str, owner: str, where: Location) -> Iterator[Problem]:
    try:
        check_name(name)
    except TopologyError as error:
        yield Problem(where, f"{owner}: {error}")


def _duplicates(nodes: Iterable[Node]) -> Iterator[Problem]:
    first: dict[str, Node] = {}
    for node in nodes:
        earlier = first.setdefault(node.name, node)
        if earlier is not node:
            place = f" at {earlier.where}" if str(earlier.where) else ""
            message = f"{role_of(node)} '{node.name}': the {role_of(earlier)}{place} has that name already"
            yield Problem(node.where, message, "rename one of them")
