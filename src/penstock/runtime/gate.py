"""Holds up the epochs of a run while it is closed."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from penstock.epochs.orders import Orders
from penstock.errors import CoordinationError

_ORDERS_SECONDS = 0.1
"""How often a run looks what is wanted of it."""


class Gate:
    """Closed and opened by one thread, passed by another."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._for_good = False
        self._heeded = 0.0

    @property
    def is_closed(self) -> bool:
        return not self._open.is_set()

    def hold(self, closed: bool) -> None:
        """Close it, or open it; once it is open for good, nothing closes it."""
        if closed and not self._for_good:
            self._open.clear()
        else:
            self._open.set()

    def heed(self, orders: Orders, replica: str) -> None:
        """Look whether the replica is to be frozen; not more often than it matters."""
        now = time.monotonic()
        if now - self._heeded > _ORDERS_SECONDS:
            self._heeded = now
            with suppress(CoordinationError):
                self.hold(bool(orders.frozen(replica)))

    def open_for_good(self) -> None:
        """The run is about to end: whoever waits goes on."""
        self._for_good = True
        self._open.set()

    def pass_through(self) -> None:
        """Wait until it is open."""
        self._open.wait()
