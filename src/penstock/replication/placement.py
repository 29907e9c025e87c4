"""Where a replica goes: never where a failure would take a sibling too. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from penstock.topology.model import ANY_CELL, LOCAL

HEALING_SECONDS = 600.0
"""So long after a replica has failed in it again and again, a cell is thought to be healthy again."""
_HEALTHY: Mapping[str, float] = {}


def choose_cell(cells: Sequence[str], taken: Collection[str], sick: Mapping[str, float] = _HEALTHY) -> str | None:
    """The first healthy cell that no sibling is in; None when all are taken.

    `sick` are those where replicas have failed, and when; where there are only such, the one that has had the longest
    time to heal.
    """
    if ANY_CELL in cells:
        return LOCAL
    free = [cell for cell in cells if cell not in taken]
    return min(free, key=lambda cell: sick.get(cell, float("-inf")), default=None)
