"""Parquet files, by row: their schema, how far they go, and any range of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.connectors.arrow_types import arrow_schema, penstock_schema
from penstock.connectors.base import Chunk
from penstock.connectors.records.files import Mark, TrackedFile, digest_of_ends, reading, shrunk
from penstock.errors import ConnectorError
from penstock.topology.schema import Schema

_BATCH_ROWS = 65_536

_WIDER = {
    "tinyint": {"smallint", "int", "bigint", "double"},
    "smallint": {"int", "bigint", "float", "double"},
    "int": {"bigint", "double"},
    "float": {"double"},
}
"""The types that hold every value of a type."""


@dataclass(frozen=True)
class ParquetFile(TrackedFile):
    """A Parquet file; a mark in it is a row."""

    name: str
    path: Path
    weight: ClassVar[int] = 100

    def size(self) -> int:
        return int(self._open().metadata.num_rows)

    def fingerprint(self, at: int) -> str:
        """Of the bytes of all row groups that have rows before `at`, of which the first and last are enough."""
        file = self._open()
        groups, _ = _groups_between(file, 0, at)
        ends = [_bytes_of(file.metadata.row_group(group)) for group in (groups[0], groups[-1])]
        return digest_of_ends(self.name, self.path, ends[0][0], ends[-1][1])

    def beginning(self, whole_lines: bool) -> Mark:
        return Mark(0, 0)

    def advance(self, mark: Mark, limit: int, whole_lines: bool) -> Mark:
        row = min(self.size(), mark.at + limit)
        return Mark(row, row)

    def split(self, begin: Mark, at: int, end: int) -> Mark:
        row = min(at, end)
        return Mark(row, row)

    def schema(self) -> Schema:
        try:
            return penstock_schema(self._open().schema_arrow)
        except ConnectorError as error:
            raise ConnectorError(f"{self.name}: {self.path}: {error}") from error

    def check(self, declared: Schema) -> None:
        """Raises ConnectorError unless the file has every declared column, and its type or a narrower one."""
        found = self.schema()
        for field in declared.fields:
            actual = found.type_of(field.name)
            if actual is None:
                raise ConnectorError(
                    f"{self.name}: {self.path} has no column '{field.name}'; it has {', '.join(found.names)}"
                )
            if actual != field.type and field.type not in _WIDER.get(actual, ()):
                raise ConnectorError(
                    f"{self.name}: column '{field.name}' of {self.path} is {actual}, "
                    f"not {field.type}; correct the schema"
                )

    def read(self, begin: int, end: int, schema: Schema) -> Iterator[Chunk]:
        """The rows from `begin` to `end`, cast to `schema`; raises ConnectorError when there are fewer."""
        self.check(schema)
        wanted = arrow_schema(schema)
        file = self._open()
        if file.metadata.num_rows < end:
            raise ConnectorError(shrunk(self.name, self.path, end, file.metadata.num_rows))
        groups, skipped = _groups_between(file, begin, end)
        row = skipped
        with reading(self.name, self.path):
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=list(schema.names)):
                skip = max(begin - row, 0)
                part = batch.slice(skip, max(end - row - skip, 0))
                row += batch.num_rows
                if part.num_rows:
                    yield Chunk(_cast(part, wanted))

    def _open(self) -> pq.ParquetFile:
        with reading(self.name, self.path):
            try:
                return pq.ParquetFile(self.path)
            except pa.ArrowInvalid as error:
                raise ConnectorError(f"{self.name}: {self.path} is not a Parquet file: {error}") from error


def _groups_between(file: pq.ParquetFile, begin: int, end: int) -> tuple[list[int], int]:
    """The row groups that hold the rows, and how many rows lie before the first of them."""
    groups: list[int] = []
    first, row = 0, 0
    for index in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(index).num_rows
        if row < end and row + rows > begin:
            first = row if not groups else first
            groups.append(index)
        row += rows
    return groups, first


def _bytes_of(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Where the group's data begins and ends in the file."""
    columns = [group.column(index) for index in range(group.num_columns)]
    begins = [min(c.dictionary_page_offset or c.data_page_offset, c.data_page_offset) for c in columns]
    ends = [begin + c.total_compressed_size for begin, c in zip(begins, columns, strict=True)]
    return min(begins), max(ends)


def _cast(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    # Unsafe only in that timestamps finer than a microsecond lose what Spark cannot hold.
    columns = [
        pc.cast(batch.column(field.name), field.type, safe=not pa.types.is_timestamp(field.type)) for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
