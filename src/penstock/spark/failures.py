"""Tuples that failed in custom code, on their way from the executors to the driver; and back, what to leave out.

    failures/<epoch>/<operator>-<task>   one line for every tuple that failed there
    failures/<epoch>/left-out            the source tuples that the epoch does without, see `epochs.postponed`

A task writes its file whole and under a fixed name, so a task that runs twice writes the same file twice. The driver
reads the files when the epoch's job is done. Operators with `on_error: fail` come nowhere near this.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from penstock.connectors.console import plain
from penstock.epochs.record import SEQUENCE_BITS

FOLDER = "failures"
_LEFT_OUT = "left-out"


@dataclass(frozen=True)
class Failure:
    """One tuple that failed in one operator."""

    operator: str
    sequence: int
    """That of the source tuple it comes from; see `epochs.sequence`."""
    error: str
    at: str
    """The user's own line, `module.py:7`; empty when none is known."""
    tuple: Mapping[str, Any]


@dataclass(frozen=True)
class Dropped:
    """How many tuples failed in an operator that drops them."""

    operator: str
    count: int


class FailureLedger:
    """Collects what failed in one task of one operator; `close` hands it over.

    Where only the number is wanted, `keep` is False and the tuples themselves are not written. `epoch` tells the
    present one; without it, the tuples are of the present epoch themselves.
    """

    def __init__(self, state: Path, operator: str, keep: bool, epoch: Callable[[], int] | None = None) -> None:
        self._epoch = epoch
        self._state = state
        self._operator = operator
        self._keep = keep
        self._count = 0
        self._draft: Path | None = None
        self._file: TextIO | None = None

    def note(self, sequence: int, tup: Mapping[str, Any], error: str, at: str) -> None:
        """A tuple failed."""
        if self._file is None:
            epoch = self._epoch() if self._epoch is not None else sequence >> SEQUENCE_BITS
            folder = folder_of(self._state, epoch)
            folder.mkdir(parents=True, exist_ok=True)
            self._draft = folder / f".{uuid.uuid4().hex}"
            self._file = self._draft.open("w")
        self._count += 1
        if self._keep:
            line = {"sequence": sequence, "error": error, "at": at, "tuple": plain(tup)}
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def close(self, task: int | str) -> None:
        """Make what was noted visible to the driver, if there is anything. `task` is the same when the task runs again,
        no other task's, and has no dash."""
        if self._file is None or self._draft is None:
            return
        if not self._keep:
            self._file.write(json.dumps({"count": self._count}) + "\n")
        self._file.close()
        self._draft.replace(self._draft.with_name(f"{self._operator}-{task}"))


def folder_of(state: Path, epoch: int) -> Path:
    """Where the failures of an epoch are."""
    return state / FOLDER / str(epoch)


def collect_failures(state: Path, epoch: int) -> Iterator[Failure | Dropped]:
    """What failed in the epoch's job, in a fixed order."""
    folder = folder_of(state, epoch)
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir(), key=lambda item: item.name):
        operator, dash, _ = path.name.rpartition("-")
        if path.name.startswith(".") or path.name == _LEFT_OUT or not dash:
            continue
        with path.open() as file:
            for line in file:
                fields = json.loads(line)
                yield Dropped(operator, **fields) if "count" in fields else Failure(operator, **fields)


def leave_out(state: Path, epoch: int, sequences: Collection[int]) -> None:
    """Have the epoch's next job do without these source tuples, and forget what failed in the last one."""
    forget_failures(state, epoch)
    folder = folder_of(state, epoch)
    folder.mkdir(parents=True)
    draft = folder / f".{uuid.uuid4().hex}"
    draft.write_text(json.dumps(sorted(sequences)))
    draft.replace(folder / _LEFT_OUT)


def left_out(state: Path, epoch: int) -> list[int]:
    """The source tuples that the epoch does without, in order."""
    try:
        sequences: list[int] = json.loads((folder_of(state, epoch) / _LEFT_OUT).read_text())
    except FileNotFoundError:
        return []
    return sequences


def is_settled(state: Path, epoch: int) -> bool:
    """Whether it is known what the epoch does without: its job runs again, or after a crash."""
    return (folder_of(state, epoch) / _LEFT_OUT).exists()


def forget_failures(state: Path, epoch: int) -> None:
    """The epoch is committed, or its job is about to run again."""
    shutil.rmtree(folder_of(state, epoch), ignore_errors=True)
