"""Which of Spark's output modes a topology needs: a query has one for all of its operators."""

from __future__ import annotations

from penstock.topology.lineage import joins_of, windows_of
from penstock.topology.model import Topology

APPEND = "append"
"""A row appears when it will not change any more: how a window is emitted once, when it is closed."""
UPDATE = "update"
"""A row appears whenever it has changed: how running counts are emitted, and windows with `emit: changes`."""


def output_mode(topology: Topology) -> str:
    """The mode of a valid topology; validation has seen to it that no operator needs the other one."""
    closing = any(window.closes for window in windows_of(topology))
    # A tuple of a left join that found no partner appears once, when its time is over.
    return APPEND if closing or any(join.keeps_left for join in joins_of(topology)) else UPDATE
