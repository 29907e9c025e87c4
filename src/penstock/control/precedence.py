"""Which replica of a machine comes first when they all want its processors at once.

Replicas work on the same epoch at the same moment, and the first to finish delivers it: where they share cores, each
is as slow as all of them together. So one goes ahead, and its siblings take what it leaves; when it is sick or gone,
another goes ahead. Those that would fall behind that way are not held back: all are to stay safe. Nor is anybody when
the next epoch is late: the one ahead may be spinning, and use up what its siblings need to do the epoch without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.control.priority import lower_session, raise_session
from penstock.replication.lifecycle import Phase

BEHIND = 15
"""The niceness of those that follow: beside one that is at work they get a thirtieth of a core."""
_NEAR = 2
"""Who is more epochs behind is not held back, however little the last one took it."""
_EASY, _HARD = 0.5, 0.8
"""Who takes at most the first share of the time between two epochs for one may follow; who takes more than the second
may not any longer."""
_LATE, _LATE_SECONDS = 0.5, 0.5
"""An epoch is late when the time between two is over by this share of it, and by so many seconds: replicas tell only
four times a second how far they are, and what looks like a longer pause within that is none."""


@dataclass(frozen=True)
class Runner:
    """What counts of one replica."""

    name: str
    phase: Phase
    took: float
    """Seconds its last epoch took it; 0 when nobody knows."""
    behind: int = 0
    """How many epochs it is behind the first."""


@dataclass(frozen=True)
class Order:
    """Who goes ahead, if anybody does, and who follows."""

    ahead: str | None = None
    following: frozenset[str] = frozenset()


def order_after(before: Order, runners: Sequence[Runner], pace: float, still: float = 0.0) -> Order:
    """The order from now on; `pace` is how many seconds there usually are between two epochs. Pure.

    `still` is how many have passed since the last one. When the next is late, nobody goes ahead, and then whoever has
    done it does: one that spins without getting anywhere comes to follow. Where only the input was late, that costs
    one epoch at which all work with equal rights.
    """
    safe = [runner for runner in runners if runner.phase is Phase.SAFE]
    if not safe or still > pace + max(pace * _LATE, _LATE_SECONDS):
        return Order()
    furthest = min(safe, key=lambda runner: runner.behind).name
    ahead = before.ahead if before.ahead in {runner.name for runner in safe} else furthest
    following = {
        runner.name
        for runner in safe
        if runner.name != ahead and runner.behind <= _NEAR
        and 0 < runner.took <= pace * (_HARD if runner.name in before.following else _EASY)
    }
    return Order(ahead, frozenset(following))


class Precedence:
    """Has the replicas of this machine keep to the order; `sessions` says by name which are here, and theirs."""

    def __init__(
        self, lower: Callable[[int, int], bool] = lower_session, restore: Callable[[int], bool] = raise_session
    ) -> None:
        self._lower, self._restore = lower, restore
        self._order = Order()
        self._behind: dict[str, int] = {}
        """Who was made to follow, and its session."""

    def heed(self, runners: Sequence[Runner], sessions: Mapping[str, int], pace: float, still: float = 0.0) -> None:
        here = [runner for runner in runners if runner.name in sessions]
        self._order = order_after(self._order, here, pace, still)
        following = {name: sessions[name] for name in self._order.following}
        # What the system does not do now is tried again at the next look.
        kept = {name: session for name, session in self._behind.items()
                if sessions.get(name) == session and (following.get(name) == session or not self._restore(session))}
        self._behind = kept | {name: session for name, session in following.items()
                               if kept.get(name) == session or self._lower(session, BEHIND)}  # fmt: skip
