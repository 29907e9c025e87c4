"""Watch the epochs that a run commits: how far it is, and how long it stood still. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

_REMEMBERED = 5


@dataclass
class Pulse:
    """The committed epochs of a run over all its lives."""

    epoch: int = 0
    longest_pause: float = 0.0
    """Seconds between two committed epochs, at worst; the start before the first one does not count."""
    paused_after: int = 0
    """The epoch after which the longest pause came."""
    _since: float | None = None
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    _starting: bool = False

    @property
    def pace(self) -> float:
        """Seconds that an epoch takes nowadays, starts left out; 0 while nothing is known."""
        return median(self._recent) if self._recent else 0.0

    def start(self) -> None:
        """The run is started: its first epoch takes longer than most."""
        self._starting = True

    def note(self, epoch: int, now: float) -> bool:
        """`epoch` is committed at the time `now`; True when it was not before."""
        if epoch <= self.epoch:
            return False
        if self._since is not None:
            took = now - self._since
            if not self._starting:
                self._recent.append(took / (epoch - self.epoch))
            if took > self.longest_pause:
                self.longest_pause, self.paused_after = took, self.epoch
        self.epoch, self._since, self._starting = epoch, now, False
        return True
