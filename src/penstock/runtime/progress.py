"""What a run has done so far, for whoever wants to show it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Snapshot:
    """One look at a run."""

    epoch: int
    backlog: int
    """About how many tuples wait to be read: the lag."""
    seconds: float
    """Since the start of the first epoch."""
    tuples: dict[str, int]
    """Tuples that have left each source and operator, and entered each sink."""
    malformed: dict[str, int]
    last_epoch_ms: float


@dataclass
class Progress:
    """Counts of a run; written by the committing thread, read by the display."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _tuples: dict[str, int] = field(default_factory=dict)
    _malformed: dict[str, int] = field(default_factory=dict)
    _epoch: int = 0
    _backlog: int = 0
    _last_epoch_ms: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    def add(self, counts: dict[str, int]) -> None:
        with self._lock:
            for name, number in counts.items():
                self._tuples[name] = self._tuples.get(name, 0) + number

    def epoch_committed(self, epoch: int, backlog: int, took_ms: float, malformed: dict[str, int]) -> None:
        with self._lock:
            self._epoch, self._backlog, self._last_epoch_ms = epoch, backlog, took_ms
            for name, number in malformed.items():
                self._malformed[name] = self._malformed.get(name, 0) + number

    def snapshot(self) -> Snapshot:
        with self._lock:
            return Snapshot(
                self._epoch,
                self._backlog,
                time.monotonic() - self._started,
                dict(self._tuples),
                dict(self._malformed),
                self._last_epoch_ms,
            )
