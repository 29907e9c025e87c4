"""Where a replica goes: never where a failure would take a sibling too. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.topology.model import ANY_CELL, LOCAL


def choose_cell(cells: Sequence[str], taken: Collection[str], sick: Collection[str] = ()) -> str | None:
    """The first healthy cell that no sibling is in; a sick one when there is no other; None when all are taken."""
    if ANY_CELL in cells:
        return LOCAL
    free = [cell for cell in cells if cell not in taken]
    healthy = [cell for cell in free if cell not in sick]
    return next(iter((*healthy, *free)), None)
