"""The tuples of every node of a topology, measured where measured and derived where they must follow."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.runtime.progress import Snapshot
from penstock.topology.model import Dup, Operator, Select, StreamRef, Topology, Union


@dataclass(frozen=True)
class Line:
    """One node of the display."""

    role: str
    name: str
    tuples: int
    malformed: int = 0


PASSES_ALL = (Select, Dup, Union)
"""Operators that give exactly one tuple for each they take: their count follows from their inputs'."""


def tally(topology: Topology, snapshot: Snapshot) -> list[Line]:
    """A line for each source, operator and sink, in the order written."""
    known: dict[str, int] = dict(snapshot.tuples)

    def tuples_of(ref: StreamRef, depth: int = 0) -> int:
        node = topology.node(ref.node)
        if isinstance(node, Operator) and ref.node not in known and depth < len(topology.operators):
            if isinstance(node, PASSES_ALL):
                return sum(tuples_of(item, depth + 1) for item in node.inputs)
            return 0
        return known.get(ref.node, 0)

    sources = [
        Line("source", item.name, known.get(item.name, 0), snapshot.malformed.get(item.name, 0))
        for item in topology.sources
    ]
    operators = [Line(op.keyword, op.name, tuples_of(StreamRef(op.name))) for op in topology.operators]
    sinks = [Line("sink", item.name, known.get(f"→{item.name}", 0)) for item in topology.sinks]
    return [*sources, *operators, *sinks]
