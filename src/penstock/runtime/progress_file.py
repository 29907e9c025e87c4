"""How far a run is, in a small file that is replaced again and again, for a console that looks often.

A log with a line as often would grow by gigabytes in a month.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SINCE_START = "seconds"
"""Changes all the time, and says nothing new."""


class ProgressFile:
    """Written by a run, read by whoever wants; never half written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: dict[str, Any] = {}
        self._moved = time.time()

    def write(self, progress: Mapping[str, Any]) -> None:
        """Have it tell this progress, and since when the epoch is done; where nothing is new, nothing is written.

        A disk that takes nothing does not end the run: what is told is old then.
        """
        fields = {name: value for name, value in progress.items() if name != _SINCE_START}
        if fields == self._written:
            return
        now = time.time()
        if fields["epoch"] != self._written.get("epoch"):
            self._moved = now
        draft = self._path.with_name(f".{self._path.name}")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps({**progress, "at": now, "moved": self._moved}))
            draft.replace(self._path)
            self._written = fields

    def read(self) -> dict[str, Any] | None:
        """What was written last; None where nothing was."""
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self._path.read_text())
            return found if isinstance(found, dict) else None
        return None
