"""When a frozen run cuts an epoch ahead of those that it does, so that what comes is received. Pure."""

from __future__ import annotations

SOONEST_SECONDS = 0.5
"""It is done later anyway: sooner would only make more epochs of the same tuples."""
_SHARE = 50


def is_due(frozen_for: float, since_last: float, more_waits: bool = False) -> bool:
    """Whether to cut one after so many seconds; what is wanted between two epochs is looked at elsewhere.

    The longer it lasts, the seldomer: an hour makes some three hundred epochs, a day less than twice as many. So the
    time of a tuple is told to a fiftieth of the time that it waits. `more_waits` where the last had no room for all.
    """
    return since_last >= (SOONEST_SECONDS if more_waits else max(SOONEST_SECONDS, frozen_for / _SHARE))
