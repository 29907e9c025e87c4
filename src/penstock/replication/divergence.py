"""Replicas that give different output for the same epoch: their code is not deterministic. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isinf

_TOLERANCE = 1e-6
"""Fractions that are sums are compared to this part of what was added up, and of one for each row."""


@dataclass(frozen=True)
class Divergence:
    """Where two replicas first differ."""

    epoch: int
    node: str
    """The first operator, in the order of the plan; `source x` or `sink x` where it is none, or any of several."""
    replicas: tuple[str, ...]

    def __str__(self) -> str:
        replicas = " and ".join(self.replicas)
        return f"replicas {replicas} differ in epoch {self.epoch}, first in '{self.node}': {self._why()}"

    def _why(self) -> str:
        # Neither is an operator's name: no name has a blank.
        if self.node.startswith("source "):
            return "it does not give the same tuples when it is read again"
        if self.node.startswith("sink "):
            return "it receives something else, and all code before it has given the same"
        return (
            "it does not give the same for the same tuples; in code use context.time and context.random, and in SQL "
            "nothing like now() or uuid()"
        )


def find_divergence(
    epoch: int, compared: Mapping[str, str], digests: Mapping[str, Mapping[str, str]]
) -> Divergence | None:
    """Whoever is named by the first step for which replicas have different digests.

    `compared` are the steps in the order of the plan, see `plan.comparing`; `digests` are by replica and step.
    """
    for step, named in compared.items():
        found = {replica: of_steps[step] for replica, of_steps in sorted(digests.items()) if step in of_steps}
        if any(not are_alike(one, other) for one, other in zip(found.values(), list(found.values())[1:], strict=False)):
            return Divergence(epoch, named, tuple(found))
    return None


def are_alike(one: str, other: str) -> bool:
    """Whether two digests are of the same rows, see `spark.digests`: equal, but for the last digits of sums."""
    if one == other:
        return True
    (exact, *sums), (exact_other, *sums_other) = one.split(), other.split()
    if exact != exact_other or len(sums) != len(sums_other):
        return False
    rows = int(exact.partition(":")[0])
    return all(_are_near(a, b, rows) for a, b in zip(sums, sums_other, strict=True))


def _are_near(one: str, other: str, rows: int) -> bool:
    """Two columns, each as `weighed/size`: its sum, and the sum without signs."""
    (weighed, size), (weighed_other, size_other) = map(_numbers, (one, other))
    if isinf(size) or isinf(size_other):
        return size == size_other
    most = _TOLERANCE * max(size, size_other, rows)
    return abs(weighed - weighed_other) <= most and abs(size - size_other) <= most


def _numbers(text: str) -> tuple[float, float]:
    weighed, _, size = text.partition("/")
    return float(weighed), float(size)
