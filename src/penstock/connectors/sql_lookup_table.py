"""A table of a database as a stream is enriched from it: read whole, and again from time to time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnClause, MetaData, Table, column, quoted_name, select

from penstock.connectors.arrow_types import arrow_schema
from penstock.connectors.base import Place
from penstock.connectors.lookup_table import LookupTable, Snapshot
from penstock.connectors.sql_address import read_address
from penstock.connectors.sql_database import close_database, database_of
from penstock.connectors.sql_target import Target
from penstock.errors import ConnectorError
from penstock.topology.schema import Schema


@dataclass(frozen=True)
class SqlTable(LookupTable):
    """A table of SQLite or PostgreSQL."""

    place: Place
    address: str
    table: str
    declared: Schema
    every: float

    def schema(self) -> Schema:
        return self.declared

    def mark(self, now: float) -> Any:
        # Nobody tells when a table has changed: it is read again every so often.
        return int(now // self.every)

    def snapshot(self, scratch: Path) -> Snapshot:
        target = self._target()
        columns: list[ColumnClause[Any]] = [column(quoted_name(name, quote=True)) for name in self.declared.names]
        wanted = select(*columns).select_from(Table(self.table, MetaData(), quote=True))
        try:
            with database_of(target).transaction() as connection:
                found = [tuple(row) for row in connection.execute(wanted)]
        finally:
            close_database(target)
        # A database gives rows in any order; sorted, the same content has the same digest.
        rows = sorted(found, key=repr)
        digest = hashlib.blake2b(repr((str(self.declared), rows)).encode(), digest_size=16)
        return Snapshot(digest.hexdigest(), self._arrow(rows))

    def _arrow(self, rows: list[tuple[Any, ...]]) -> pa.Table:
        columns = []
        for number, field in enumerate(arrow_schema(self.declared)):
            try:
                columns.append(pa.array([row[number] for row in rows], field.type))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise ConnectorError(
                    f"{self.place.name}: column '{field.name}' of table '{self.table}' does not fit its declared type: "
                    f"{error}"
                ) from error
        return pa.table(columns, schema=arrow_schema(self.declared))

    def _target(self) -> Target:
        address = read_address(self.place, self.address)
        if address.file is not None and not address.file.exists():
            # SQLite would make an empty one.
            raise ConnectorError(f"{self.place.name}: no database {address.file}")
        return Target(self.place.topology, self.place.name, address.url, address.shown, self.table)
