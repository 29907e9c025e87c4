"""What is wanted of a running topology, kept in its coordinator until it is taken back.

An order is a wish and no message: whoever it concerns looks, many times a second, what is wanted now. So the same order
given twice is one, and one that was given while nobody was there is found.
"""

from __future__ import annotations

from penstock.coordination.base import Coordinator

EVERYTHING = "*"
"""In place of an operator: the whole replica."""

FIRST = "1"
"""The replica of a topology that has one only."""

_FROZEN = "orders/frozen/"
_INTERVAL = "orders/interval"
_INTERVALS = f"{_INTERVAL}/"
SCRIPT = "orders/script/"
"""How far the topology's own script was carried out; see `control.script_progress`."""
_END_HELD = "orders/end-held/"


class Orders:
    """The orders for one topology."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def freeze(self, replica: str, operator: str = EVERYTHING) -> bool:
        """Have a replica begin no further epoch; False when that was wanted already."""
        key = f"{_FROZEN}{replica}/{operator}"
        known = self._coordinator.get(key) is not None
        self._coordinator.put(key, operator)
        return not known

    def unfreeze(self, replica: str, operator: str = EVERYTHING) -> bool:
        """Take that back; False when it was not wanted. For the whole replica, whatever of it was frozen."""
        keys = self._coordinator.list(f"{_FROZEN}{replica}/")
        if operator != EVERYTHING:
            keys = [key for key in keys if key == f"{_FROZEN}{replica}/{operator}"]
        for key in keys:
            self._coordinator.delete(key)
        return bool(keys)

    def frozen(self, replica: str) -> tuple[str, ...]:
        """The operators of a replica that are frozen, or `EVERYTHING`; nothing when it may go on."""
        prefix = f"{_FROZEN}{replica}/"
        return tuple(key.removeprefix(prefix) for key in self._coordinator.list(prefix))

    def set_interval(self, seconds: float | None, operator: str = EVERYTHING) -> None:
        """Have so many seconds from the start of an epoch to that of the next; None: as the topology says.

        An epoch passes all operators: of the seconds of several, the most count, whoever has given them. What is
        wanted for the whole topology and what is wanted for operators replace each other.
        """
        key = _INTERVAL if operator == EVERYTHING else _INTERVALS + operator
        if seconds is not None:
            self._coordinator.put(key, repr(seconds))
        # Not before the new one is there: nobody is to see neither.
        if operator == EVERYTHING:
            replaced = self._coordinator.list(_INTERVALS)
        else:
            replaced = [_INTERVAL] if seconds is not None else []
        for old in (*replaced, *([key] if seconds is None else [])):
            self._coordinator.delete(old)

    def interval(self) -> float | None:
        """Seconds from the start of an epoch to that of the next, where others are wanted than the topology says."""
        wanted = self._coordinator.entries(_INTERVAL)
        whole = wanted.pop(_INTERVAL, None)
        return float(whole) if whole is not None else max(map(float, wanted.values()), default=None)

    def hold_end(self, mine: str) -> None:
        """Have the topology wait at the end of its input, until `release_end` or the end of this process."""
        self._coordinator.create_ephemeral(_END_HELD + mine, mine)

    def release_end(self, mine: str) -> None:
        """Take that back; the end may be held by others still."""
        self._coordinator.delete(_END_HELD + mine)

    def end_is_held(self) -> bool:
        """Whether anybody still wants something of the topology, so that it must not end."""
        return bool(self._coordinator.list(_END_HELD))

    def forget(self) -> None:
        """The topology begins anew: nothing is wanted of it yet."""
        for key in (*self._coordinator.list(_FROZEN), *self._coordinator.list(SCRIPT),
                    *self._coordinator.list(_INTERVAL)):  # fmt: skip
            self._coordinator.delete(key)
