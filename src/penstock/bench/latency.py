"""How long tuples take from when they are due to when their epoch is committed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Commit:
    """An epoch of a source with a steady pace: its tuples by number, and when they were delivered."""

    first: int
    end: int
    """The number after its last tuple."""
    since_ms: float
    """When tuple 0 was due."""
    at_ms: float
    """When the epoch was committed."""


def latency_ms(commits: Sequence[Commit], rate: float, skipped: int = 0) -> list[float]:
    """The percentiles of all tuples from number `skipped` on; each was due when the pace says so."""
    parts = []
    for commit in commits:
        numbers = np.arange(max(commit.first, skipped), commit.end)
        parts.append(commit.at_ms - (commit.since_ms + numbers * (1000.0 / rate)))
    waited = np.concatenate(parts) if parts else np.array([])
    return [float(value) for value in np.percentile(waited, PERCENTILES)] if len(waited) else []
