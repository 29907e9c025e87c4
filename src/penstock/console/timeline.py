"""The epochs of a topology one after the other: when each was seen to be done, and which replica delivered it. Pure.

And from that, whether anything was late when a replica was lost: that is measured, not supposed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from penstock.console.events import Event

_EPOCHS_KEPT = 240
_USUAL_SECONDS = 60.0
"""What is usual is what was so in the last minute."""
_FEWEST_GAPS = 3
"""From fewer gaps nobody can tell what is usual."""
_LOOK_SECONDS = 0.5
"""So far off may a time be that was seen: nothing is called late for less."""
_SETTLED_SECONDS = 5.0
"""How long after a loss its effect shows, and longer where epochs are far apart."""
_OPEN_SECONDS = 60.0
"""For how long after that nothing may come: then it is the source that has nothing, and nobody knows what was late."""


class Delivered(NamedTuple):
    """An epoch that is done."""

    epoch: int
    time: float
    replica: str
    """Who delivered it; empty where nobody has said."""


@dataclass(frozen=True)
class _Loss:
    """A replica that is gone, while epochs went on."""

    replica: str
    time: float
    host: str
    """Where it was; empty where nobody has said."""
    usual: float | None
    """The longest that there was between two epochs in the minute before; None when there were too few to tell."""

    @property
    def settled(self) -> float:
        """When its effect has shown."""
        return self.time + max(_SETTLED_SECONDS, 3 * (self.usual or 0.0))


@dataclass
class Timeline:
    """One topology's."""

    epochs: deque[Delivered] = field(default_factory=lambda: deque(maxlen=_EPOCHS_KEPT))
    _moments: deque[float] = field(default_factory=lambda: deque(maxlen=_EPOCHS_KEPT))
    """When looks found that there were further epochs."""
    _processes: dict[str, int | None] = field(default_factory=dict)
    """By replica: one that has another, or none, was lost."""
    _hosts: dict[str, str] = field(default_factory=dict)
    """By replica, where it last was: of one that is gone nobody says it."""
    _losses: list[_Loss] = field(default_factory=list)

    def take(self, name: str, seen: Mapping[str, Any], now: float) -> list[Event]:
        """One look, `now` by the clock of who looks; what there is to say of replicas that were lost."""
        self._add(seen, now)
        if seen["how"] != "running":
            # It was stopped: who is gone is missed by nobody.
            self._losses.clear()
            self._processes = {}
            return []
        # Of a replica that is not among them nothing is known: a busy coordinator gave no answer, or its node is away.
        processes = self._processes | {view["name"]: view["process"] for view in seen["replicas"]}
        if processes != self._processes:
            self._losses += self._lost(processes, now)
            self._processes = processes
        self._hosts |= {view["name"]: host for view in seen["replicas"] if (host := view.get("host"))}
        if not self._losses:
            return []
        settled = {loss: words for loss in self._losses if (words := self._verdict(loss, now)) is not None}
        self._losses = [loss for loss in self._losses if loss not in settled]
        return [Event(now, name, *words) for words in settled.values()]

    def _add(self, seen: Mapping[str, Any], now: float) -> None:
        known = self.epochs[-1] if self.epochs else None
        newest, (first, by) = int(seen["epoch"]), seen.get("delivered_by", (0, ""))
        if known is not None and newest < known.epoch:
            # It was begun anew, or has gone back to a checkpoint.
            self.epochs.clear()
            self._moments.clear()
            known = None
        # Who delivered the last ones may only be known now.
        for place in range(len(self.epochs) - 1, -1, -1):
            each = self.epochs[place]
            if each.replica or not (who := _who(each.epoch, first, by)):
                break
            self.epochs[place] = each._replace(replica=who)
        moment = _moment(seen, now)
        if newest == 0 or (known is not None and newest == known.epoch):
            return
        if known is None:
            self.epochs.append(Delivered(newest, moment, _who(newest, first, by)))
        else:
            # Those between two looks were done one after the other.
            number, before = newest - known.epoch, known.time
            for step in range(max(number - _EPOCHS_KEPT, 0) + 1, number + 1):
                epoch, when = known.epoch + step, before + max(moment - before, 0.0) * step / number
                self.epochs.append(Delivered(epoch, when, _who(epoch, first, by)))
        self._moments.append(moment)

    def _lost(self, processes: Mapping[str, int | None], now: float) -> Iterator[_Loss]:
        gaps = self._gaps(now - _USUAL_SECONDS, now)
        usual = max(gaps) if len(gaps) >= _FEWEST_GAPS else None
        for name, process in processes.items():
            if self._processes.get(name) not in (None, process):
                yield _Loss(name, now, self._hosts.get(name, ""), usual)

    def _gaps(self, begin: float, end: float) -> list[float]:
        """The times between epochs that ended in a span."""
        return [after - before for before, after in pairwise(self._moments) if begin < after <= end]

    def _verdict(self, loss: _Loss, now: float) -> tuple[str, str] | None:
        """What became of the output after a loss, and its tone; None while that is open."""
        if now < loss.settled:
            return None
        where = f" on {loss.host}" if loss.host else ""
        who = f"replica {loss.replica}{where} was gone at {_clock(loss.time)}"
        if loss.usual is None:
            return f"{who}; too few epochs came before it to say whether anything was late", "plain"
        late = loss.usual + _LOOK_SECONDS
        if self._moments and now - self._moments[-1] > late:
            waits = now < loss.settled + _OPEN_SECONDS
            return None if waits else (f"{who}; nothing has come since {_clock(self._moments[-1])}", "plain")
        longest = max(self._gaps(loss.time - _LOOK_SECONDS, now), default=0.0)
        if longest <= late:
            return f"{who}; nothing was late: at most {longest:.1f} s between epochs, {loss.usual:.1f} s before", "good"
        return f"{who}; output was late: {longest:.1f} s between two epochs, at most {loss.usual:.1f} s before", "bad"


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))


def _who(epoch: int, first: int, by: str) -> str:
    """The replica that delivered an epoch; see `topology_log.newest_deliveries`."""
    place = epoch - first
    return by[place].strip("-") if 0 <= place < len(by) else ""


def _moment(seen: Mapping[str, Any], now: float) -> float:
    """When the newest epoch was done, as closely as anybody has seen: clocks of two machines are not compared."""
    progress = seen.get("progress") or {}
    if progress.get("epoch") == seen["epoch"] and "moved" in progress:
        return now - max(float(seen.get("told", seen["at"])) - float(progress["moved"]), 0.0)
    return now
