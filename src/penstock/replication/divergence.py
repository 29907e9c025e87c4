"""Replicas that give different output for the same epoch: their code is not deterministic. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Divergence:
    """Where two replicas first differ."""

    epoch: int
    node: str
    """The first operator, in the order of the topology, or the sink."""
    replicas: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"replicas {' and '.join(self.replicas)} differ in epoch {self.epoch}, first in '{self.node}': its code "
            "does not give the same for the same tuples; use context.time and context.random, no clock and no chance"
        )


def find_divergence(
    epoch: int, order: Sequence[str], digests: Mapping[str, Mapping[str, str]]
) -> Divergence | None:
    """The first node, in that order, for which replicas have different digests; `digests` are by replica and node."""
    for node in order:
        found = {replica: of_nodes[node] for replica, of_nodes in digests.items() if node in of_nodes}
        if len(set(found.values())) > 1:
            return Divergence(epoch, node, tuple(sorted(found)))
    return None
