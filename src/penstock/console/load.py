"""How much the operators of a topology have to do, beside what they could do. Pure.

Spark runs all operators of an epoch in one job, and does not say how long each took. What is measured is for which
share of the time the topology is at work; the operators divide it by the tuples that each takes and gives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.console.watching import Point

_BEHIND_SECONDS = 10.0
_COMPARED_SECONDS = 30.0
"""Over how long tuples are compared: longer than an epoch, mostly, so that no operator seems to rest between two."""


@dataclass(frozen=True)
class Load:
    """From 0.0, nothing to do, to 1.0, no more is possible."""

    at_work: float = 0.0
    """For which share of the last seconds the topology was at work."""
    behind: bool = False
    """Whether more comes than it reads, however much it works."""
    nodes: Mapping[str, float] = field(default_factory=dict)
    """By node of the graph, but for those of which nothing is counted."""


def load_of(graph: Mapping[str, Any] | None, points: Sequence[Point]) -> Load:
    """What a topology that runs has to do, and each node of its graph."""
    if not points or graph is None:
        return Load()
    sources = {node["id"] for node in graph["nodes"] if node["role"] == "source"}
    at_work, behind = points[-1].at_work, is_behind(points, sources)
    tuples = _tuples_of_nodes(graph, [point for point in points if points[-1].time - point.time <= _COMPARED_SECONDS])
    most = max(tuples.values(), default=0.0)
    whole = 1.0 if behind else at_work
    # Where nothing has moved for long, an epoch is on its way, and nobody knows in which operator.
    return Load(at_work, behind, {name: whole * (count / most if most else 1.0) for name, count in tuples.items()})


def is_behind(points: Sequence[Point], sources: Collection[str]) -> bool:
    """Whether more waits to be read than some seconds ago, and more than is read in so many seconds."""
    now = points[-1]
    before = next((point for point in reversed(points) if now.time - point.time >= _BEHIND_SECONDS), None)
    if before is None or now.lag <= before.lag:
        return False
    read = sum(rate for name, rate in now.rates.items() if name in sources)
    return now.lag > read * _BEHIND_SECONDS


def _tuples_of_nodes(graph: Mapping[str, Any], points: Sequence[Point]) -> dict[str, float]:
    """By node, what it has taken and given; without those of which neither is known."""
    rates: dict[str, float] = {}
    for point in points:
        for name, rate in point.rates.items():
            rates[name] = rates.get(name, 0.0) + rate
    found = {node["id"]: rates[node["id"]] for node in graph["nodes"]
             if node["id"] in rates and node["role"] != "sink"}  # fmt: skip
    for edge in graph["edges"]:
        port = f"{edge['from']}.{edge['port']}" if edge["port"] else edge["from"]
        taken = rates.get(port)
        if taken is None and edge["to"].startswith("sink:"):
            taken = rates.get(edge["to"])
        if taken is not None:
            found[edge["to"]] = found.get(edge["to"], 0.0) + taken
    return found
