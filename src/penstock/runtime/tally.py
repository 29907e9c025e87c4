"""The tuples of every node of a topology, for the display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.plan.counting import Measured, derive_counts, derive_port_counts
from penstock.plan.graph import Plan
from penstock.runtime.progress import Snapshot


@dataclass(frozen=True)
class Line:
    """One node of the display; `tuples` is None where nothing is known yet, or a rewrite took it away."""

    role: str
    name: str
    tuples: int | None
    malformed: int = 0
    failed: int = 0
    ports: Mapping[str, int] = field(default_factory=dict)
    """Of an operator with named output ports, the tuples of each that are known."""


def tally(plan: Plan, snapshot: Snapshot) -> list[Line]:
    """A line for each source, operator and sink, in the order written."""
    topology = plan.topology
    measured = Measured(snapshot.tuples, snapshot.delivered, snapshot.ports)
    counts, ports = derive_counts(plan, measured), derive_port_counts(plan, measured)
    sources = [
        Line("source", item.name, snapshot.tuples.get(item.name, 0), snapshot.malformed.get(item.name, 0))
        for item in topology.sources
    ]
    operators = [
        Line(item.keyword, item.name, counts[item.name], failed=snapshot.failed.get(item.name, 0),
             ports=ports[item.name])
        for item in topology.operators
    ]
    sinks = [Line("sink", item.name, snapshot.delivered.get(item.name, 0)) for item in topology.sinks]
    return [*sources, *operators, *sinks]
