"""Ctrl-C and SIGTERM finish the epoch; a second Ctrl-C does not wait."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""


@contextmanager
def stopping_on_signals(stop: Callable[[], None], say: Callable[[str], None]) -> Iterator[None]:
    """Call `stop` at the first SIGINT or SIGTERM inside the block, exit at once at the second."""
    asked = threading.Event()

    def handle(signum: int, frame: FrameType | None) -> None:
        if asked.is_set():
            os._exit(INTERRUPTED)
        asked.set()
        say("stopping after this epoch; once more to stop at once")
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
