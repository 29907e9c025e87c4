"""Which version of each table an epoch is enriched from: agreed in its record, and kept for as long as it may be
processed again.

When an epoch is cut, each table is looked at. If it has changed it is copied into the state folder, under the digest
of its content, and the digest stands in the epoch's record. Whoever processes that epoch, now or after a crash, reads
that copy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.lookup_table import LookupTable
from penstock.errors import ConnectorError

FOLDER = "tables"
KEPT = 24
"""An epoch has one new version of a table at most, and no more than the last ten epochs are ever processed again."""

Versions = Mapping[str, str]
"""By operator, the digest of its table."""


class TableVersions:
    """The versions that one process has seen; it looks at a table only when that may have changed."""

    def __init__(self, state: Path, tables: Mapping[str, LookupTable]) -> None:
        self._state = state
        self._tables = tables
        self._seen: dict[str, tuple[Any, str]] = {}

    def newest(self, before: Versions, now: float) -> dict[str, str]:
        """The versions for the next epoch; `before` are those of the last one.

        A table that cannot be read any more stays as it was in the last epoch; in the first, raises ConnectorError.
        """
        versions: dict[str, str] = {}
        for name, table in self._tables.items():
            try:
                versions[name] = self._version(name, table, now)
            except ConnectorError as error:
                if name not in before:
                    raise
                print(f"operator '{name}' goes on with its table as it was: {error}", file=sys.stderr)
                versions[name] = before[name]
        return versions

    def fetch(self, versions: Versions, now: float) -> None:
        """See to it that these versions, which another process has agreed on, are here too."""
        for name, version in versions.items():
            if version_file(self._state, name, version).exists() or name not in self._tables:
                continue
            if self._version(name, self._tables[name], now) != version:
                raise ConnectorError(
                    f"operator '{name}': the epoch was agreed with another version of its table ({version[:8]}), which "
                    "is neither kept here nor what the table is now; put the table back as it was, or start anew with "
                    "--fresh"
                )

    def _version(self, name: str, table: LookupTable, now: float) -> str:
        mark = table.mark(now)
        seen = self._seen.get(name)
        if seen is None or seen[0] != mark or not version_file(self._state, name, seen[1]).exists():
            folder = self._state / FOLDER / name
            snapshot = table.snapshot(folder)
            self._seen[name] = mark, snapshot.digest
            _keep(version_file(self._state, name, snapshot.digest), snapshot.rows)
        return self._seen[name][1]


def version_file(state: Path, name: str, version: str) -> Path:
    """Where a version of an operator's table is kept."""
    return state / FOLDER / name / f"{version}.arrow"


def rows_of_version(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(file)) as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _keep(file: Path, rows: pa.Table) -> None:
    if file.exists():
        os.utime(file)  # it is the newest again
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=65536)
    draft.replace(file)
    versions = sorted(file.parent.glob("*.arrow"), key=lambda kept: kept.stat().st_mtime_ns)
    for old in versions[:-KEPT]:
        old.unlink(missing_ok=True)
