"""Who commanded what: a JSON line for each command before it is carried out, and one for what came of it."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from io import FileIO
from pathlib import Path
from typing import Any

from penstock.console.private_files import private
from penstock.console.tokens import Person

_MINUTE = 60.0
_REFUSALS_A_MINUTE = 60
_LONGEST = 10_000_000
_MOST_WORDS = 300


class Outcome(StrEnum):
    """What came of a command."""

    DONE = "done"
    PENDING = "pending"
    """It is being done: a node has not answered yet."""
    REFUSED = "refused"
    FAILED = "failed"


class Audit:
    """A file that only grows; when it is long, it is put aside for good, and the next begins.

    Those who may only look have a file of their own, of which the last two are kept: whatever they ask for, it takes
    no place from what was commanded.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refusals = path.with_name("refusals.jsonl")
        self._lock = threading.Lock()
        self._refusals: deque[float] = deque()
        """When somebody was refused in the last minute."""

    def refused(self, who: Person, address: str, what: str, topology: str | None, said: str) -> None:
        """Somebody wanted to command who may only look; not so often that no other refusal is left."""
        now = time.monotonic()
        with self._lock:
            while self._refusals and now - self._refusals[0] > _MINUTE:
                self._refusals.popleft()
            if len(self._refusals) >= _REFUSALS_A_MINUTE:
                return
            self._refusals.append(now)
        self._write(self.refusals, _line(who, address, what, topology, {"outcome": Outcome.REFUSED, "said": said}))

    def note(self, who: Person, address: str, what: str, topology: str | None, **details: Any) -> str:
        """Write a line; what went wrong, or nothing."""
        return self._write(self.path, _line(who, address, what, topology, details))

    def _write(self, path: Path, line: dict[str, Any]) -> str:
        try:
            with self._lock:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists() and path.stat().st_size > _LONGEST:
                    path.replace(_unused(path) if path == self.path else path.with_suffix(".1.jsonl"))
                with open(path, "ab", buffering=0, opener=private) as file:
                    _append(file, json.dumps(line).encode() + b"\n")
        except OSError as error:
            return f"it could not be written to {path}: {error.strerror}"
        return ""


def _line(who: Person, address: str, what: str, topology: str | None, details: Mapping[str, Any]) -> dict[str, Any]:
    return {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "who": who.name, "role": who.role,
            "address": address, "command": what, "topology": topology, **details}  # fmt: skip


def _unused(path: Path) -> Path:
    """Where a file is put aside: behind those that were put there before."""
    numbers = [int(found[1]) for each in path.parent.iterdir()
               if (found := re.fullmatch(rf"{re.escape(path.stem)}\.(\d+)\.jsonl", each.name))]  # fmt: skip
    return path.with_suffix(f".{max(numbers, default=0) + 1}.jsonl")


def _append(file: FileIO, line: bytes) -> None:
    """The whole line, or nothing of it: the next one is not to stand behind half of one."""
    before = os.fstat(file.fileno()).st_size
    try:
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
    except OSError:
        file.truncate(before)
        raise


class Given:
    """One command in the audit: `begun` before it is carried out, then `ended`, with the same id.

    `unwritten` is what went wrong with either line, or nothing.
    """

    def __init__(self, audit: Audit, who: Person, address: str, what: str, topology: str | None) -> None:
        self.unwritten = ""
        self._audit = audit
        self.what, self.topology = what, topology
        self._who, self._address = who, address
        self._id = uuid.uuid4().hex[:12]

    def begun(self, **details: Any) -> None:
        self.unwritten = self._audit.note(self._who, self._address, self.what, self.topology, id=self._id, **details)

    def ended(self, outcome: Outcome, said: str, topology: str | None = None) -> None:
        """`topology` is for a command of which only its end tells what it was for."""
        wrong = self._audit.note(self._who, self._address, self.what, topology or self.topology, id=self._id,
                                 outcome=outcome, said=said[:_MOST_WORDS])  # fmt: skip
        self.unwritten = self.unwritten or wrong
