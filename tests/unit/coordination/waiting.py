"""Wait for a condition, not for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 30.0
"""A slow machine is no failure; a condition that never comes is."""


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.01)
