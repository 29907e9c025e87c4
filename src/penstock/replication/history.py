"""How often a topology was begun anew, as its coordinator has it, where its replicas are on several nodes.

Each time is a history of its own: what a node has of another one is of no use any more.
"""

from __future__ import annotations

from penstock.coordination.base import Coordinator

_HISTORY = "history"


def history_of(coordinator: Coordinator) -> int | None:
    """The history that was begun last; None where nobody has counted."""
    known = coordinator.get(_HISTORY)
    return None if known is None else int(known)


def note_history(coordinator: Coordinator, history: int) -> None:
    """It is begun: what all nodes share is made ready for it."""
    coordinator.put(_HISTORY, str(history))
