"""When to cut an epoch although no source has anything new: so that windows close, or appear. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.topology.lineage import joins_of, windows_of
from penstock.topology.model import Topology
from penstock.topology.timers import uses_timers
from penstock.topology.window import WindowKind

_TIMERS_EVERY = 1000
"""How often timers are looked at when no source has anything, unless `epoch.tick` says how often."""
_SHORTEST_LOOK = 100


@dataclass(frozen=True)
class TickRules:
    """What of a topology asks for empty epochs. Times are in milliseconds."""

    every: int = 0
    """The user's own wish: an empty epoch after so long; 0: never."""
    settle: bool = False
    """Whether each epoch with tuples is followed by another: what an epoch's tuples close is closed in the next."""
    steps: tuple[int, ...] = ()
    """Of windows over the time of epochs, how far their ends are apart."""
    gaps: tuple[int, ...] = ()
    """Of sessions over the time of epochs, the gap after which they end."""
    early: tuple[int, ...] = ()
    """Of windows that appear in every so manieth epoch, how many."""
    longest: int = 0
    """The longest of the windows over the time of epochs: so long after the last tuple, all are closed."""

    @property
    def by_epoch_time(self) -> bool:
        return bool(self.steps or self.gaps)


def tick_rules(topology: Topology) -> TickRules:
    """When a topology needs an epoch although its sources are idle."""
    closing = [window for window in windows_of(topology) if window.closes]
    by_epoch_time = [window.span for window in closing if window.on is None]
    outer = [join for join in joins_of(topology) if join.keeps_left]
    timers = any(uses_timers(operator, topology) for operator in topology.operators)
    waits = [round(join.within * 1000) for join in outer if not join.on]
    return TickRules(
        every=round(topology.epoch.tick * 1000) or (_TIMERS_EVERY if timers else 0),
        settle=bool(closing or outer),
        steps=(
            *(span.step for span in by_epoch_time if span.kind is not WindowKind.SESSION),
            *(_look_after(wait) for wait in waits),
        ),
        early=tuple(window.every for window in windows_of(topology) if window.every > 1),
        gaps=tuple(span.length for span in by_epoch_time if span.kind is WindowKind.SESSION),
        longest=max(
            (*(span.length for span in by_epoch_time), *(wait + _look_after(wait) for wait in waits)), default=0
        ),
    )


def _look_after(wait: int) -> int:
    """How often to look for tuples of a join that have waited in vain: they appear at most so much later."""
    return max(wait // 10, _SHORTEST_LOOK)


@dataclass
class Ticks:
    """Decides about one run's empty epochs; what it remembers is only needed to cut no more of them than necessary."""

    rules: TickRules
    _last_filled: int | None = field(default=None, init=False)
    """The time of the last epoch that had tuples, as far as known."""
    _last_filled_epoch: int = field(default=0, init=False)
    _settling: int = field(default=0, init=False)
    """The last epoch that was asked for so that windows close."""
    _epoch: int = field(default=0, init=False)
    _time: int | None = field(default=None, init=False)
    """The last epoch seen, and its time."""
    _time_before: int | None = field(default=None, init=False)
    """The time of the epoch before that."""

    def due(self, epoch: int, time_ms: int, filled: bool, now: int) -> bool:
        """Whether to cut a further epoch at `now`, whatever the sources have.

        `epoch` is the last one, `time_ms` its time, `filled` says whether it had tuples.
        """
        if filled or self._last_filled is None:
            self._last_filled, self._last_filled_epoch = time_ms, epoch
        if epoch != self._epoch:
            self._epoch, self._time_before, self._time = epoch, self._time, time_ms
        rules = self.rules
        if rules.every > 0 and now - time_ms >= rules.every:
            return True
        if any(epoch < -(-self._last_filled_epoch // early) * early for early in rules.early):
            return True
        # The epoch that lets windows close may come so late that its own time is the end of others.
        passed = self._time_before is not None and self._ends_between(self._time_before, time_ms)
        moved = filled or passed or (rules.by_epoch_time and epoch > self._settling)
        if rules.settle and moved and epoch > 0:
            self._settling = epoch + 1
            return True
        return epoch > 0 and self._ends_between(time_ms, now)

    def _ends_between(self, before: int, now: int) -> bool:
        """Whether the time of epochs has passed the end of a window in which there may be tuples."""
        assert self._last_filled is not None
        if before > self._last_filled + self.rules.longest:
            return False
        ends = (self._last_filled + gap for gap in self.rules.gaps)
        return any(before // step < now // step for step in self.rules.steps) or any(
            before < end <= now for end in ends
        )
