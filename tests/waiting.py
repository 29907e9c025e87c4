"""Wait for a condition, not for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 30.0
"""A slow machine is no failure; a condition that never comes is."""

_OFTEN_SECONDS, _SELDOM_SECONDS = 0.01, 0.25
_PAUSE_PER_LOOK = 9
"""Who asks a console or opens a database a hundred times a second takes a core from what it waits for."""


def wait_until(
    condition: Callable[[], object],
    seconds: float = PATIENCE_SECONDS,
    alive: Callable[[], bool] = lambda: True,
    said: Callable[[], str] = lambda: "",
) -> None:
    """Look again and again until the condition holds: a hundred times a second where that costs next to nothing, and
    otherwise for about a tenth of the time.

    Fails when `seconds` are over, and at once when what should bring it about is not `alive`; `said` adds what is
    known then.
    """
    deadline = time.monotonic() + seconds
    began = time.monotonic()
    while not condition():
        assert alive(), f"it ended before what was waited for came: {said()}"
        assert time.monotonic() < deadline, f"what was waited for did not come: {said()}"
        look = time.monotonic() - began
        time.sleep(min(max(_OFTEN_SECONDS, _PAUSE_PER_LOOK * look), _SELDOM_SECONDS))
        began = time.monotonic()
