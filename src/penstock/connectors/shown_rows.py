"""The console of a topology with replicas: rows go to a file, first wins, and whoever has a terminal shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from penstock.connectors.base import Place, SinkConnector
from penstock.connectors.console import EpochRows
from penstock.connectors.registry import sink_connector
from penstock.topology.model import FrozenOptions, Sink, Topology

CONSOLE = "console"


def shown_sink(sink: Sink, topology: Topology, home: Path, run: str = "") -> SinkConnector:
    """The file that stands for a console, in the folder that all replicas share."""
    stands_for = Sink(sink.name, sink.input, "file", FrozenOptions({"file": str(_file(home, sink.name))}))
    return sink_connector(stands_for, Place(topology.name, sink.name, topology.folder.absolute(), run))


class ShownRows:
    """What has been added to the consoles' files since the last look."""

    def __init__(self, topology: Topology, home: Path, from_now_on: bool) -> None:
        names = [sink.name for sink in topology.sinks if sink.kind == CONSOLE]
        self._files = {name: _file(home, name) for name in names}
        self._at = {name: _size(path) if from_now_on else 0 for name, path in self._files.items()}

    def look(self, epoch: int, show: Callable[[EpochRows], None]) -> None:
        for name, path in self._files.items():
            rows = [json.loads(line) for line in self._new_lines(name, path)]
            if rows:
                show(EpochRows(name, epoch, pa.Table.from_pylist(rows), len(rows)))

    def _new_lines(self, name: str, path: Path) -> Iterator[bytes]:
        if _size(path) <= self._at[name]:
            return
        with path.open("rb") as file:
            file.seek(self._at[name])
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._at[name] += len(line)
                yield line


def _file(home: Path, name: str) -> Path:
    return home / "shown" / f"{name}.jsonl"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
