"""Notice custom code that hangs, at no cost per tuple."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Hung(BaseException):
    """Raised inside the user's code. Not an Exception, so that `except Exception` does not swallow it."""


@contextmanager
def watch(timeout: float, progress: Callable[[], object]) -> Iterator[None]:
    """Raise `Hung` in the block when `progress()` stands still for `timeout` to twice `timeout` seconds.

    Works in the main thread only, which is where Spark runs a worker's function.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = progress()

    def look(signum: int, frame: FrameType | None) -> None:
        nonlocal seen
        now = progress()
        if now == seen:
            raise Hung
        seen = now

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, timeout, timeout)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
