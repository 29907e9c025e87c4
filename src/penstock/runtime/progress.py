"""What a run has done so far, for whoever wants to show it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.epochs.record import EpochRecord
from penstock.runtime.tuple_age import TupleAge
from penstock.runtime.work_share import WorkShare

_WHOLES_KEPT = 4


@dataclass(frozen=True)
class Snapshot:
    """One look at a run."""

    epoch: int
    backlog: int
    """About how many tuples wait to be read: the lag."""
    seconds: float
    """Since the query was started."""
    tuples: dict[str, int]
    """Tuples that have left each source, and each operator that counts them."""
    delivered: dict[str, int]
    """Tuples committed at each sink."""
    malformed: dict[str, int]
    last_epoch_ms: float
    at_work: float = 0.0
    """For which share of the last seconds it was at work."""
    lost: int = 0
    """Tuples of epochs that were skipped, as at-most-once allows."""
    waiting: str | None = None
    """Why no epoch can be cut at the moment."""
    failed: dict[str, int] = field(default_factory=dict)
    """Tuples that failed for good in each operator: dropped, or among the dead letters."""
    retried: int = 0
    """How often a source tuple was put off because of a failure, to be replayed."""
    late: int = 0
    """Tuples that came too late for all of their windows, or for their join."""
    ports: dict[str, dict[str, int]] = field(default_factory=dict)
    """By operator, the tuples of each of its ports, where there are several. `tuples` has their sum."""
    wholes_ms: tuple[float, ...] = ()
    """What each of the last epochs took all in all, the newest last: from its cut, or the end of the one before it,
    while `last_epoch_ms` leaves out what Spark does before it hands an epoch over."""
    age_ms: float = 0.0
    """About how old the tuples of the last epoch that had any were when they were delivered."""


@dataclass
class Progress:
    """Counts of a run; written by the committing thread, read by the display."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _tuples: dict[str, int] = field(default_factory=dict)
    _delivered: dict[str, int] = field(default_factory=dict)
    _malformed: dict[str, int] = field(default_factory=dict)
    _epoch: int = 0
    _backlog: int = 0
    _last_epoch_ms: float = 0.0
    _wholes_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_WHOLES_KEPT))
    work: WorkShare = field(default_factory=WorkShare)
    age: TupleAge = field(default_factory=TupleAge)
    _lost: int = 0
    _waiting: str | None = None
    _failed: dict[str, int] = field(default_factory=dict)
    _retried: int = 0
    _late: int = 0
    _ports: dict[str, dict[str, int]] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        """The clock starts now."""
        self._started = time.monotonic()

    def add(self, counts: dict[str, int]) -> None:
        with self._lock:
            _add(self._tuples, counts)

    def add_ports(self, operator: str, counts: Mapping[str, int]) -> None:
        """Tuples that have left an operator with several ports, by port."""
        with self._lock:
            _add(self._ports.setdefault(operator, {}), counts)
            _add(self._tuples, {operator: sum(counts.values())})

    def epoch_committed(
        self, record: EpochRecord, took_ms: float, delivered: dict[str, int], malformed: dict[str, int]
    ) -> None:
        with self._lock:
            self._epoch, self._backlog, self._last_epoch_ms = record.epoch, record.backlog, took_ms
            whole_ms = max(took_ms, round(self.work.so_far() * 1000, 1))
            self._wholes_ms.append(whole_ms)
            self.age.delivered(record, whole_ms, time.time() * 1000)
            _add(self._delivered, delivered)
            _add(self._malformed, malformed)

    def lost(self, tuples: int) -> None:
        """So many tuples were in flight at a crash, all in all."""
        with self._lock:
            self._lost = tuples

    def tuples_failed(self, failed: Mapping[str, int], postponed: int) -> None:
        """In one epoch, by operator those that failed for good; and how many source tuples are to be replayed."""
        with self._lock:
            _add(self._failed, failed)
            self._retried += postponed

    def came_late(self, tuples: int) -> None:
        with self._lock:
            self._late += tuples

    def waits_for(self, why: str | None) -> None:
        """The run waits, or goes on again when there is no reason."""
        self._waiting = why

    def snapshot(self) -> Snapshot:
        with self._lock:
            return Snapshot(
                self._epoch,
                self._backlog,
                time.monotonic() - self._started,
                dict(self._tuples),
                dict(self._delivered),
                dict(self._malformed),
                self._last_epoch_ms,
                self.work.share(),
                self._lost,
                self._waiting,
                dict(self._failed),
                self._retried,
                self._late,
                {operator: dict(counts) for operator, counts in self._ports.items()},
                tuple(self._wholes_ms),
                self.age.ms,
            )


def _add(totals: dict[str, int], counts: Mapping[str, int]) -> None:
    for name, number in counts.items():
        totals[name] = totals.get(name, 0) + number
