"""Holds up the epochs of a run while it is closed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from penstock.epochs.orders import Orders
from penstock.errors import CoordinationError
from penstock.plan.description import counted
from penstock.spark.signals import Held

_ORDERS_SECONDS = 0.1
"""How often a run looks what is wanted of it."""


def epochs_to_do(number: int) -> str:
    """What follows the word `frozen` when so many epochs wait."""
    return f" with {counted(number, 'epoch')} to do" if number else ""


class Gate:
    """Closed and opened by orders. Who reads for the run is told, and hands over no epoch while it is closed."""

    def __init__(self) -> None:
        self.held = Held.NOT
        self._heeded = 0.0

    @property
    def is_closed(self) -> bool:
        return self.held is not Held.NOT

    def why_closed(self, received: int) -> str | None:
        """In plain words, with so many epochs that wait for it; None while it is open."""
        return f"frozen{epochs_to_do(received)}; `penstock unfreeze` lets it go on" if self.is_closed else None

    def heed(self, orders: Orders, replica: str, all_of_them: Sequence[str], reads_ahead: bool) -> bool:
        """Look whether the replica is to be frozen, not more often than it matters; True when that has changed.

        Where nobody else cuts epochs, for all replicas are frozen, it goes on to receive, if it can read ahead.
        """
        now = time.monotonic()
        if now - self._heeded <= _ORDERS_SECONDS:
            return False
        self._heeded, before = now, self.held
        with suppress(CoordinationError):
            if not orders.frozen(replica):
                self.held = Held.NOT
            elif reads_ahead and all(orders.frozen(each) for each in all_of_them):
                self.held = Held.RECEIVING
            else:
                self.held = Held.STILL
        return self.held is not before
