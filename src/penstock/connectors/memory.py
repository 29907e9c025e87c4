"""The `memory` sink: rows collected in the driver's process, for tests and notebooks."""

from __future__ import annotations

import base64
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from penstock.connectors.base import EVERY_GUARANTEE, Place, SinkConnector, Staged
from penstock.errors import ConnectorError, TopologyError
from penstock.topology.catalogue import Kind, Option
from penstock.topology.model import Delivery

INLINE_LIMIT = 64 * 1024
"""Rows of up to this many bytes travel inside `Staged.detail`; larger ones wait in a file."""


@dataclass
class _Collected:
    """What a sink has received in this process."""

    last_epoch: int = -1
    tables: list[pa.Table] = field(default_factory=list)


_store: dict[tuple[str, str], _Collected] = {}


@dataclass(frozen=True)
class MemorySink(SinkConnector):
    """Collect rows in the driver's process; `MemorySink.rows(topology, sink)` gives them back."""

    describe: ClassVar[Kind] = Kind(
        "memory", "sink", "Collect tuples in this process, for tests and notebooks.",
        Option("memory", "boolean", "Nothing, or true.", default=True))

    keeps: ClassVar[frozenset[Delivery]] = EVERY_GUARANTEE
    """What it keeps goes with the process, and so does everything that could contradict it."""

    topology: str
    name: str

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any]) -> MemorySink:
        require_flag("memory", place.name, options)
        return cls(place.topology, place.name)

    @staticmethod
    def rows(topology: str, sink: str) -> list[dict[str, Any]]:
        """The rows committed so far, in order; none for a sink that was never opened."""
        collected = _store.get((topology, sink), _Collected())
        return [row for table in collected.tables for row in rows_of(table)]

    def read_back(self) -> Iterator[pa.RecordBatch]:
        for table in _store.get((self.topology, self.name), _Collected()).tables:
            yield from table.to_batches()

    def open(self, fresh: bool) -> None:
        if fresh:
            _store[self.topology, self.name] = _Collected()

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        kept = [batch for batch in batches if batch.num_rows]
        return stage_table(pa.Table.from_batches(kept)) if kept else Staged(0)

    def commit(self, epoch: int, staged: list[Staged]) -> None:
        collected = _store.setdefault((self.topology, self.name), _Collected())
        if epoch > collected.last_epoch:
            # Read everything first: a part that is missing must not leave half an epoch behind.
            tables = [staged_table(part) for part in staged if part.rows]
            collected.tables.extend(tables)
            collected.last_epoch = epoch
        discard_staged(staged)

    def abort(self, staged: list[Staged]) -> None:
        discard_staged(staged)


def require_flag(kind: str, sink: str, options: Mapping[str, Any]) -> None:
    """`console:` and `memory:` take no value of their own; raises TopologyError for anything but true."""
    if options.get(kind) not in (None, True, "", {}):
        raise TopologyError(f"sink '{sink}': {kind} takes no value; write `{kind}: true`")


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """A table's rows as Python values, maps as dicts."""
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    return rows


def stage_table(table: pa.Table, rows: int | None = None) -> Staged:
    """Keep a table until the commit: in the message itself when it is small, otherwise in a file.

    `rows` is how many rows the task had, if the table holds only some of them.
    """
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    content = buffer.getvalue()
    count = table.num_rows if rows is None else rows
    if content.size <= INLINE_LIMIT:
        return Staged(count, {"inline": base64.b64encode(content).decode("ascii")})
    path = Path(tempfile.gettempdir()) / f"penstock-{uuid.uuid4().hex}.arrow"
    try:
        path.write_bytes(content)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ConnectorError(f"cannot keep rows in {path} until the epoch's end: {error.strerror}; "
                             "free some space or set TMPDIR to another folder") from error
    return Staged(count, {"file": str(path)})


def staged_table(staged: Staged) -> pa.Table:
    """What `stage_table` kept."""
    if "inline" in staged.detail:
        return pa.ipc.open_stream(base64.b64decode(staged.detail["inline"])).read_all()
    path = Path(staged.detail["file"])
    try:
        return pa.ipc.open_stream(path.read_bytes()).read_all()
    except FileNotFoundError as error:
        raise ConnectorError(f"the rows staged in {path} are not on the driver's machine: the memory and "
                             f"console sinks take at most {INLINE_LIMIT // 1024} KB a task from other "
                             "machines; use a file sink") from error


def discard_staged(staged: list[Staged]) -> None:
    for part in staged:
        if "file" in part.detail:
            Path(part.detail["file"]).unlink(missing_ok=True)
