"""About how old tuples are when they are delivered."""

from __future__ import annotations

from penstock.epochs.record import EpochRecord

_LOOK_MS = 50.0
"""How often it is looked for more where there is no interval."""


class TupleAge:
    """Told of each epoch that is delivered, one after the other.

    When a tuple came nobody writes down. What is known is when its epoch was cut, and how long before that it was
    looked for tuples the last time: it came in between, on average in the middle. Where more waits to be read than an
    epoch has room for, tuples are older than this says; how many wait is the lag.
    """

    def __init__(self, interval: float = 0.0) -> None:
        """`interval` is the number of seconds between two cuts, at the least."""
        self._interval_ms = interval * 1000
        self._cut_ms: int | None = None
        self._whole_ms = 0.0
        self.ms = 0.0

    def delivered(self, record: EpochRecord, whole_ms: float, now_ms: float) -> None:
        """An epoch is delivered at `now_ms` that has taken so long, from its cut or the end of the one before."""
        before = record.time_ms if self._cut_ms is None else self._cut_ms
        # While an epoch was worked on, and in the interval, it was not looked; after that, all the time.
        unseen_ms = min(record.time_ms - before, max(self._interval_ms, self._whole_ms, _LOOK_MS))
        if any(record.tuples.values()):
            # Another machine may have cut it, whose clock is ahead.
            self.ms = round(max(now_ms - record.time_ms, 0.0) + max(unseen_ms, 0) / 2, 1)
        self._cut_ms, self._whole_ms = record.time_ms, whole_ms
