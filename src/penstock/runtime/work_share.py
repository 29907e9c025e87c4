"""For which share of the time a run is at work: how near it is to all that it can do."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WINDOW_SECONDS = 10.0
"""Over how long the share is taken."""
_STEPS = 20
"""It is told in twentieths: whoever writes down what is new would else write all the time."""


class WorkShare:
    """Told of each epoch by the committing thread; asked by any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._spells: deque[tuple[float, float]] = deque()
        """From when to when it was at work."""
        self._since: float | None = None
        """Since when it is."""
        self._free_since = clock()
        """Before this it had no time for another epoch, or was not to begin one."""

    @contextmanager
    def at_work(self, age: float) -> Iterator[None]:
        """While an epoch is worked on that was cut `age` seconds ago.

        It counts from its cut, since Spark plans it and writes it down before anybody here hears of it; but not from
        before the one before it was done, for which it may have waited.
        """
        with self._lock:
            self._since = since = max(self._clock() - max(age, 0.0), self._free_since)
        try:
            yield
        finally:
            with self._lock:
                now = self._clock()
                self._spells.append((since, now))
                self._since, self._free_since = None, now
                while self._spells[0][1] < now - WINDOW_SECONDS:
                    self._spells.popleft()

    def so_far(self) -> float:
        """Seconds that the epoch that is worked on has taken, counted as `at_work` does; 0.0 while there is none."""
        with self._lock:
            return 0.0 if self._since is None else self._clock() - self._since

    def was_held(self) -> None:
        """Until now it was not to begin an epoch: that was no work."""
        with self._lock:
            self._free_since = self._clock()

    def share(self) -> float:
        """From 0.0, where there was nothing to do in the last seconds, to 1.0, where there was no pause."""
        with self._lock:
            now = self._clock()
            spells = [*self._spells, *([] if self._since is None else [(self._since, now)])]
        worked = sum(max(end - max(begin, now - WINDOW_SECONDS), 0.0) for begin, end in spells)
        return round(min(worked / WINDOW_SECONDS, 1.0) * _STEPS) / _STEPS
