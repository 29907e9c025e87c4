"""When a replica that is behind does better to take a sibling's checkpoint once more than to go on replaying. Pure."""

from __future__ import annotations

from collections import deque

_LOOK_BACK_SECONDS = 4.0
"""Over how long it is judged whether a replica gains on its siblings."""
_WORTH_TIMES = 2.0
"""Replaying must take so many times longer than starting from a copy."""
_SOONEST_SECONDS = 5.0
_MOST_COPIES = 4
"""At each start of a replica: where even copies do not help, the machine has too much to do."""


class CatchingUp:
    """What is seen of a replica since its query was started: how far it is, and how far its siblings are."""

    def __init__(self, worth_copying: int) -> None:
        """Nothing is copied for fewer than `worth_copying` epochs."""
        self._worth_copying = worth_copying
        self._copies = 0
        self._seen: deque[tuple[float, int]] = deque()
        self._began = 0.0
        self._first: int | None = None
        self._start_took: float | None = None

    def begins(self, now: float, epoch: int) -> None:
        """Its query is started, with the checkpoint of an epoch."""
        self._began, self._first, self._start_took = now, epoch, None
        self._seen.clear()

    def copies(self) -> None:
        """It takes a sibling's checkpoint again."""
        self._copies += 1

    def should_copy(self, now: float, own: int, head: int) -> bool:
        """Whether to take a sibling's checkpoint now."""
        if self._first is None or own <= self._first:
            return False
        if self._start_took is None:
            self._start_took = now - self._began
        behind = head - own
        self._seen.append((now, behind))
        if now - self._seen[0][0] < _LOOK_BACK_SECONDS:
            return False
        while now - self._seen[0][0] >= _LOOK_BACK_SECONDS:
            before = self._seen.popleft()
        if behind < self._worth_copying or self._copies == _MOST_COPIES:
            return False
        gained = (before[1] - behind) / (now - before[0])
        return gained <= 0 or behind / gained > max(_WORTH_TIMES * self._start_took, _SOONEST_SECONDS)
