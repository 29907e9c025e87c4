from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors.base import SinkConnector
from penstock.connectors.memory import MemorySink
from penstock.connectors.registry import SINKS

TOPOLOGY = """\
topology: visits
delivery: exactly-once
sources: {visits: {file: visits.csv, schema: "user string"}}
sinks: {out: {from: visits, memory: true}, seen: {from: visits, console: true}}
"""


@dataclass(frozen=True)
class RowsOfTheStandIn(MemorySink):
    """Reads what `fake_run.py` wrote."""

    folder: Path | None = None

    def redirected(self, folder: Path) -> SinkConnector:
        return replace(self, folder=folder)

    def read_back(self) -> Iterator[pa.RecordBatch]:
        assert self.folder is not None
        lines = (self.folder / "rows.jsonl").read_text().splitlines()
        yield pa.RecordBatch.from_pylist([json.loads(line) for line in lines])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a topology of 12 tuples, whose sink holds what the stand-in wrote."""
    monkeypatch.setitem(SINKS, "memory", RowsOfTheStandIn)  # type: ignore[misc]
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "topology.yaml").write_text(TOPOLOGY)
    (folder / "visits.csv").write_text("ann\n" * 12)
    return folder


@pytest.fixture(autouse=True)
def short_freezes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.chaos.schedule._FREEZE_SECONDS", (0.1, 0.2))
