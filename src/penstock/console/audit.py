"""Who commanded what: one JSON line for each, written before it is carried out."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.console.private_files import private

_LONGEST = 10_000_000


class Audit:
    """A file that only grows; when it is long, it is put aside, and the next begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def note(self, who: str, role: str, address: str, what: str, topology: str, details: Mapping[str, Any]) -> str:
        """Write a command down; what went wrong, or nothing."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "who": who, "role": role,
                "address": address, "command": what, "topology": topology, **details}  # fmt: skip
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                if self.path.exists() and self.path.stat().st_size > _LONGEST:
                    self.path.replace(self.path.with_suffix(".1.jsonl"))
                with open(self.path, "a", encoding="utf-8", opener=private) as file:
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            return f"it could not be written to {self.path}: {error.strerror}"
        return ""
