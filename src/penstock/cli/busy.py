"""What a command shows while it is at work: a line that stays in place on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.status import Status

from penstock.cli.screen import err

_PATIENCE_SECONDS = 2.0
"""A pipe is told of progress only so often, and not at all of what is done sooner."""


class Busy:
    """Tells what is being done, and how far it is."""

    def __init__(self, status: Status | None) -> None:
        self._status = status
        self._what = ""
        self._told = time.monotonic()

    def say(self, what: str) -> None:
        """Something new is being done."""
        self._what = what
        self._told = time.monotonic()
        if self._status is not None:
            self._status.update(f"{what} …")
        else:
            _line(f"{what} …")

    def look(self, done: int, whole: int) -> None:
        """How many of its bytes are done."""
        percent = f"{self._what}: {100 * done // max(whole, 1)} % of {megabytes(whole)}"
        if self._status is not None:
            self._status.update(percent)
        elif time.monotonic() - self._told > _PATIENCE_SECONDS:
            self._told = time.monotonic()
            _line(percent)


@contextmanager
def busy(what: str) -> Iterator[Busy]:
    """Show that the command is at work while the block runs."""
    if not err.is_terminal:
        yield Busy(None)
        return
    with err.status(f"{what} …") as status:
        yield Busy(status)


def megabytes(size: int) -> str:
    """A size in words."""
    if size < 1_000_000:
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:,.1f} MB"


def _line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
