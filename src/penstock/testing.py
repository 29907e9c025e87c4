"""Test a topology in three lines, with real Spark and no files:

    from penstock.testing import run_on

    def test_only_errors_are_kept():
        result = run_on(topology, lines=[{"level": "ERROR"}, {"level": "INFO"}])
        assert result.same("alerts", [{"level": "ERROR"}])

Spark is started once and kept for the whole test session. An operator that has a key is tried without Spark, see
`KeyedHarness`.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.connectors.base import Place
from penstock.connectors.console import as_json_line
from penstock.connectors.memory import MemorySink
from penstock.connectors.registry import source_connector
from penstock.errors import TopologyError
from penstock.keyed_harness import FailedTuple, KeyedHarness
from penstock.runtime.progress import Snapshot
from penstock.runtime.run import RunSettings, run_topology
from penstock.spark.session import SessionSettings, default_master, start_session
from penstock.topology.model import FrozenOptions, Sink, Source, Topology

__all__ = ["FailedTuple", "KeyedHarness", "Result", "differences", "run_on", "shared_session"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What every sink received, and how many tuples went where."""

    rows: Mapping[str, list[dict[str, Any]]]
    progress: Snapshot
    dead_letters: list[dict[str, Any]] = field(default_factory=list)
    """The tuples that failed in operators with `on_error: dead-letter` or `retry(n)`."""

    def __getitem__(self, sink: str) -> list[dict[str, Any]]:
        return self.rows[sink]

    def same(self, sink: str, expected: Iterable[Row]) -> bool:
        """Whether the sink received exactly these rows, order aside."""
        missing, unexpected = differences(expected, self.rows[sink])
        return not missing and not unexpected


def run_on(
    topology: Topology,
    *,
    spark: SparkSession | None = None,
    given: Mapping[str, Iterable[Any]] | None = None,
    **sources: Iterable[Any],
) -> Result:
    """Run the topology with rows for each source, by its name; sources not named get none.

    `given` is for names that are no Python names. Rows are mappings by column, or lists in order.
    """
    rows = {**(given or {}), **sources}
    unknown = [name for name in rows if name not in {source.name for source in topology.sources}]
    if unknown:
        known = ", ".join(source.name for source in topology.sources)
        raise TopologyError(f"no source '{unknown[0]}' in topology '{topology.name}'; there are: {known}")
    doubled = replace(
        topology,
        sources=tuple(_given(topology, source, rows.get(source.name, ())) for source in topology.sources),
        sinks=tuple(Sink(sink.name, sink.input, "memory", FrozenOptions(memory=True)) for sink in topology.sinks),
    )
    with tempfile.TemporaryDirectory(prefix="penstock-test-") as folder:
        letters = Path(folder) / "dead-letters.jsonl"
        settings = RunSettings(state=Path(folder) / "state", metrics=False)
        buried = replace(doubled, dead_letters=str(letters))
        outcome = run_topology(buried, settings, spark or shared_session())
        dead = [json.loads(line) for line in letters.read_text().splitlines()] if letters.exists() else []
    received = {sink.name: _plain(MemorySink.rows(topology.name, sink.name)) for sink in topology.sinks}
    return Result(received, outcome.progress, dead)


def differences(expected: Iterable[Row], received: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that are missing and those that are there without being expected, order aside."""
    wanted, got = Counter(map(_key, expected)), Counter(map(_key, received))
    missing = [json.loads(row) for row in (wanted - got).elements()]
    unexpected = [json.loads(row) for row in (got - wanted).elements()]
    return missing, unexpected


_session: list[SparkSession] = []


def shared_session() -> SparkSession:
    """One Spark session for all tests of this process; stopped at its end."""
    if not _session:
        logs = Path(tempfile.mkdtemp(prefix="penstock-test-logs-"))
        _session.append(start_session(SessionSettings("tests", default_master(), logs, 2)))
        atexit.register(_session[0].stop)
    return _session[0]


def _given(topology: Topology, source: Source, rows: Iterable[Any]) -> Source:
    schema = source.schema
    if schema is None:
        place = Place(topology.name, source.name, topology.folder.absolute())
        schema = source_connector(source, place).schema()
    options = FrozenOptions(rows=[dict(row) if isinstance(row, Mapping) else list(row) for row in rows])
    return replace(source, kind="rows", options=options, schema=schema)


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(as_json_line(row)) for row in rows]


def _key(row: Row) -> str:
    return json.dumps(json.loads(as_json_line(row)), sort_keys=True)
