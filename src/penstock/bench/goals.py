"""What `penstock bench` wants of its workloads, and whether it is so. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LatencyGoal:
    """How long tuples may take at the pace of the benchmark, in milliseconds."""

    p50_ms: float
    p99_ms: float | None = None

    def __str__(self) -> str:
        return f"{self.p50_ms:g}" if self.p99_ms is None else f"{self.p50_ms:g}/{self.p99_ms:g}"

    def is_held(self, latency: Sequence[float]) -> bool:
        """By percentiles 50, 95 and 99."""
        p50, _, p99 = latency
        return p50 <= self.p50_ms and (self.p99_ms is None or p99 <= self.p99_ms)


NATIVE = LatencyGoal(50, 150)
"""Spark does all the work."""
WITH_PYTHON = LatencyGoal(90, 250)
COUNTED_WORDS = LatencyGoal(130)

BATCHES_OVER_TUPLES = 3.0
"""A function for each Arrow batch is to be so many times as fast as one for each tuple."""


def held(yes: bool) -> str:
    return "held" if yes else "not held"
