"""Wait for a condition, not for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 30.0
"""A slow machine is no failure; a condition that never comes is."""


def wait_until(
    condition: Callable[[], object],
    seconds: float = PATIENCE_SECONDS,
    alive: Callable[[], bool] = lambda: True,
    said: Callable[[], str] = lambda: "",
) -> None:
    """Look again and again until the condition holds.

    Fails when `seconds` are over, and at once when what should bring it about is not `alive`; `said` adds what is
    known then.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert alive(), f"it ended before what was waited for came: {said()}"
        assert time.monotonic() < deadline, f"what was waited for did not come: {said()}"
        time.sleep(0.01)
