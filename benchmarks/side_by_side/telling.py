"""Says on standard error what is being done, and for how long already."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Tell = Callable[[str], None]


class Telling:
    """Whole lines, and on a terminal between them one that is written over."""

    def __init__(self) -> None:
        self._doing = ""
        self._since = 0.0
        self._terminal = sys.stderr.isatty()

    def __call__(self, said: str) -> None:
        """A line that stays."""
        clear = "\r\033[K" if self._terminal else ""
        sys.stderr.write(f"{clear}{said}\n")
        sys.stderr.flush()

    def begin(self, doing: str) -> None:
        """From now on this is being done."""
        self._doing, self._since = doing, time.monotonic()
        if not self._terminal:
            self(f"{doing} …")

    def look(self) -> None:
        """It still is."""
        if self._terminal:
            sys.stderr.write(f"\r\033[K{self._doing} … {time.monotonic() - self._since:.0f} s")
            sys.stderr.flush()
