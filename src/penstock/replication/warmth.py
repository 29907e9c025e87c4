"""Whether a replica that was started would be late if it had to go on alone. Pure: what is seen goes in."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.replication.lifecycle import is_cold

WARM_EPOCHS = 4
"""One quick epoch may be chance: it may have been empty, or the one before has done what it shares."""


class Warmth:
    """Asked at each look, until it is warm, which it then stays."""

    def __init__(self, interval: float) -> None:
        """`interval`: how many seconds the topology's epochs are apart."""
        self._interval = interval
        self._first_at: float | None = None
        """When it was seen to have done its first epoch."""
        self._abreast_at: int | None = None
        """The epoch at which it was seen to be abreast of its siblings, and has been since."""
        self.is_cold = True

    def look(self, now: float, epoch: int, abreast: bool | None, wholes: Sequence[float]) -> None:
        """It has done an epoch, 0: none yet; `abreast` is None when nobody knows.

        `wholes` is how many seconds each of the last took it, all in all, the newest last. Epochs that it does to
        catch up do not count: they wait for nothing that siblings are at, and come one right after the other.
        """
        if not self.is_cold or not epoch:
            return
        if self._first_at is None:
            self._first_at = now
        if abreast is not None:
            self._abreast_at = (epoch if self._abreast_at is None else self._abreast_at) if abreast else None
        since = 0 if self._abreast_at is None else epoch - self._abreast_at
        counting = wholes[-since:][-WARM_EPOCHS:] if since > 0 else []
        # While there are too few, as if each took too long.
        slowest = max(counting) if len(counting) == WARM_EPOCHS else float("inf")
        self.is_cold = is_cold(slowest, self._interval, now - self._first_at)
