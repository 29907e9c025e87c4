"""How many tuples of a source the next epoch may have: more while full epochs are quick. Pure."""

from __future__ import annotations

QUICK_SECONDS = 1.0
"""What an epoch costs whatever is in it is some 50 ms: twice the tuples gain little where it takes longer."""
SLOW_SECONDS = 4.0


def next_limit(limit: int, least: int, most: int, tuples: int, seconds: float) -> int:
    """The limit after an epoch of so many tuples that took so long: `limit`, or twice or half of it.

    Never below `least` nor above `most`. An epoch that did not reach the limit says nothing of a larger one.
    """
    if seconds > SLOW_SECONDS:
        return max(least, limit // 2)
    if seconds < QUICK_SECONDS and tuples >= limit:
        return min(most, limit * 2)
    return limit
