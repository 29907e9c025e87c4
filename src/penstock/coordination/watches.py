"""The watches of one coordinator, and the thread that calls them."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)


class Signal:
    """A callback that is called soon after `raise_`, once for all the raises before the call."""

    def __init__(self, watches: Watches, prefix: str, callback: Callable[[], None]) -> None:
        self.prefix = prefix
        self._watches = watches
        self._callback = callback
        self._lock = threading.Lock()
        self._raised = False
        self._cancelled = False

    def raise_(self) -> None:
        with self._lock:
            if self._raised or self._cancelled:
                return
            self._raised = True
        self._watches.serve(self)

    def call(self) -> None:
        with self._lock:
            # Lowered before the call: a change during the call needs another one.
            self._raised = False
            if self._cancelled:
                return
        try:
            self._callback()
        except Exception:
            _log.exception("a watch of '%s' raised an error; it stays in force", self.prefix)

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
        self._watches.forget(self)


class Watches:
    """The signals of one coordinator. Its thread starts with the first raise, so who watches nothing has none."""

    def __init__(self) -> None:
        self._signals: list[Signal] = []
        self._expired: list[Signal] = []
        self._queue: queue.SimpleQueue[Signal | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, prefix: str, callback: Callable[[], None]) -> Signal:
        signal = Signal(self, prefix, callback)
        with self._lock:
            self._signals.append(signal)
        return signal

    def add_expired(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._expired.append(Signal(self, "(session)", callback))

    def all(self) -> list[Signal]:
        with self._lock:
            return list(self._signals)

    def changed(self, key: str) -> None:
        """Raise the signals of those who watch this key."""
        for signal in self.all():
            if key.startswith(signal.prefix):
                signal.raise_()

    def expired(self) -> None:
        """Tell those who asked that the session is lost."""
        with self._lock:
            signals = list(self._expired)
        for signal in signals:
            signal.raise_()

    def forget(self, signal: Signal) -> None:
        with self._lock:
            if signal in self._signals:
                self._signals.remove(signal)

    def serve(self, signal: Signal) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="penstock-watches", daemon=True)
                self._thread.start()
        self._queue.put(signal)

    def close(self) -> None:
        """Cancel everything and end the thread."""
        with self._lock:
            signals = [*self._signals, *self._expired]
        for signal in signals:
            signal.cancel()
        self._queue.put(None)

    def _serve(self) -> None:
        while (signal := self._queue.get()) is not None:
            signal.call()
