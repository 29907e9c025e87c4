"""The console of a topology with replicas: rows go to a file, first wins, and whoever has a terminal shows them.

In the file, a line with the number of an epoch stands before the rows of that epoch. How far it was shown is noted
beside it.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.base import Place, Staged
from penstock.connectors.console import EpochRows
from penstock.connectors.file_sink import FileSink
from penstock.connectors.staged_parts import new_part
from penstock.topology.logged_tuples import is_only_logged
from penstock.topology.model import Sink, Topology

CONSOLE = "console"


@dataclass(frozen=True)
class ShownSink(FileSink):
    """The file that stands for a console."""

    @property
    def seen(self) -> Path:
        """Where it is noted how much of the file was shown."""
        return self.path.with_suffix(".seen")

    def open(self, fresh: bool) -> None:
        if fresh:
            self.seen.unlink(missing_ok=True)
        super().open(fresh)

    def commit(self, epoch: int, staged: list[Staged]) -> None:
        if any(part.rows for part in staged):
            number = new_part(self._staging, self.run)
            number.parent.mkdir(parents=True, exist_ok=True)
            number.write_text(f"{epoch}\n")
            staged = [Staged(1, {"part": str(number)}), *staged]
        super().commit(epoch, staged)


def shown_sink(sink: Sink, topology: Topology, home: Path, run: str = "") -> ShownSink:
    """The file that stands for a console, in the folder that all replicas share."""
    file = home / "shown" / f"{sink.name}.jsonl"
    place = Place(topology.name, sink.name, topology.folder.absolute(), run)
    made = ShownSink.configure(place, {"file": str(file)})
    assert isinstance(made, ShownSink)
    return made


class ShownRows:
    """The rows in the consoles' files that were not shown yet, epoch by epoch over all of them; safe for threads.

    Each is shown once, also where one process after the other looks: what was delivered while nobody did is found by
    the next. One that dies between showing the rows of an epoch and noting it has these shown again.
    """

    def __init__(self, topology: Topology, home: Path) -> None:
        """Not before the files were made ready for the run."""
        consoles = [sink for sink in topology.sinks if sink.kind == CONSOLE]
        # Of one epoch, what operators on the way have emitted before what comes out in the end.
        consoles.sort(key=lambda sink: not is_only_logged(sink.name))
        self._sinks = [shown_sink(sink, topology, home) for sink in consoles]
        self._at = {sink.name: _noted(sink) for sink in self._sinks}
        self._lock = threading.Lock()

    def look(self, show: Callable[[EpochRows], None], is_over: bool = False) -> None:
        """Show the epochs that all consoles have; of a run that `is_over`, all that there is."""
        with self._lock:
            if all(_size(sink.path) <= self._at[sink.name] for sink in self._sinks):
                return
            # Before any is read: what comes while they are read would be of later epochs than what others have yet.
            done = {sink.name: sink.last_epoch() for sink in self._sinks}
            common = min(done.values())
            new = (self._epochs(sink, done[sink.name] if is_over else common) for sink in self._sinks)
            for rows, end in heapq.merge(*new, key=lambda found: found[0].epoch):
                show(rows)
                self._at[rows.sink] = end
                self._note(rows.sink)

    def _epochs(self, sink: ShownSink, last: int) -> Iterator[tuple[EpochRows, int]]:
        """The new rows of each epoch up to the `last`, and where in the file they end."""
        at = self._at[sink.name]
        if _size(sink.path) <= at:
            return
        epoch, rows = 0, list[dict[str, Any]]()
        with sink.path.open("rb") as file:
            file.seek(at)
            for line in file:
                is_number = not line.startswith(b"{")
                if is_number and rows:
                    yield _told(sink, epoch, rows), at
                    rows = []
                # The next epoch, which may be half written.
                if not line.endswith(b"\n") or (is_number and int(line) > last):
                    return
                if is_number:
                    epoch = int(line)
                else:
                    rows.append(json.loads(line))
                at += len(line)
        if rows:
            yield _told(sink, epoch, rows), at

    def _note(self, name: str) -> None:
        seen = next(sink.seen for sink in self._sinks if sink.name == name)
        draft = seen.with_suffix(".seen-draft")
        # A full disk does not end who watches: what is not noted may be shown again.
        with contextlib.suppress(OSError):
            draft.write_text(str(self._at[name]))
            draft.replace(seen)


def _told(sink: ShownSink, epoch: int, rows: list[dict[str, Any]]) -> EpochRows:
    return EpochRows(sink.name, epoch, pa.Table.from_pylist(rows), len(rows))


def _noted(sink: ShownSink) -> int:
    """Where the next row is; the beginning, where the file was begun anew since."""
    try:
        at = int(sink.seen.read_text())
    except (FileNotFoundError, ValueError):
        return 0
    return at if at <= _size(sink.path) else 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
