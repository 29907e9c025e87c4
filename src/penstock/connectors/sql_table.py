"""The table that rows go to: made when it is absent, compared with the rows when it is not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow as pa
from sqlalchemy import Column, Connection, MetaData, Table, delete, func, inspect, quoted_name, select, text

from penstock.connectors.sql_address import SQLITE
from penstock.connectors.sql_target import Target
from penstock.connectors.sql_types import sql_type, takes
from penstock.errors import ConnectorError
from penstock.topology.problems import suggest

_FOR_THE_SCHEMA = 0x70656E73746F636B
"""Locks out other processes that make tables: PostgreSQL's IF NOT EXISTS is not safe against them."""


def hold_schema(connection: Connection) -> None:
    """Be the only one who makes tables, until the transaction ends; SQLite has one writer anyway."""
    if not is_sqlite(connection):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _FOR_THE_SCHEMA})


def is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == SQLITE


def table_exists(connection: Connection, target: Target) -> bool:
    """Raises ConnectorError when there is a view of that name, or no such schema."""
    look = inspect(connection)
    if target.schema and target.schema not in look.get_schema_names():
        raise ConnectorError(f"{target.shown} has no schema '{target.schema}': create it, or correct `table`")
    if target.table in look.get_view_names(schema=target.schema):
        raise ConnectorError(f"'{target.table_name}' of {target.shown} is a view: name a table")
    return look.has_table(target.table, schema=target.schema)


def count_rows(connection: Connection, target: Target) -> int:
    return int(connection.execute(select(func.count()).select_from(_table(target))).scalar_one())


def has_rows(connection: Connection, target: Target) -> bool:
    return connection.execute(select(text("1")).select_from(_table(target)).limit(1)).first() is not None


def empty_table(connection: Connection, target: Target) -> None:
    """Remove all rows. Not TRUNCATE: that would hold up readers, and needs rights of its own."""
    connection.execute(delete(_table(target)))


def create_table(connection: Connection, target: Target, rows: pa.Schema) -> None:
    """Make the table for such rows; in upsert mode the key is its primary key."""
    sqlite = is_sqlite(connection)
    columns = [Column(field.name, sql_type(field.type, sqlite), primary_key=field.name in target.key,
                      autoincrement=False, quote=True) for field in rows]
    _table(target, columns).create(connection)


def require_fit(connection: Connection, target: Target, rows: pa.Schema) -> None:
    """Raises ConnectorError that names every column in which the table and the rows do not agree."""
    found = {column["name"]: column for column in inspect(connection).get_columns(target.table, target.schema)}
    wrong = list(_misfits(found, rows, connection))
    if wrong:
        raise ConnectorError(f"{target.words} does not fit the rows of sink '{target.sink}': {'; '.join(wrong)}. "
                             "Change the table or the rows, name another table, or drop this one to have it made")
    require_unique_key(connection, target)


def require_unique_key(connection: Connection, target: Target) -> None:
    """Upsert needs a primary key or unique constraint on exactly the key; raises ConnectorError without."""
    if target.key and set(target.key) not in _unique_keys(connection, target):
        columns = ", ".join(f'"{name}"' for name in target.key)
        raise ConnectorError(f"{target.words} has no primary key or unique constraint on ({columns}), which mode: "
                             f"upsert with that key needs: add UNIQUE ({columns}), or choose another key")


def described_table(connection: Connection, target: Target) -> Table:
    """The table with its columns as they are."""
    found = inspect(connection).get_columns(target.table, target.schema)
    return _table(target, [Column(column["name"], column["type"], quote=True) for column in found])


def _misfits(found: dict[str, Any], rows: pa.Schema, connection: Connection) -> Iterator[str]:
    sqlite = is_sqlite(connection)
    for field in rows:
        column = found.get(field.name)
        needed = sql_type(field.type, sqlite).compile(connection.dialect)
        if column is None:
            hint = suggest(field.name, found)
            yield f"it has no column '{field.name}', which should be {needed}{f' ({hint})' if hint else ''}"
        elif not takes(column["type"], field.type, sqlite):
            yield f"column '{field.name}' is {_type_name(column['type'], connection)} and should be {needed}"
    for name, column in found.items():
        if name not in rows.names and not _fills_itself(column, sqlite):
            yield f"column '{name}' needs a value (NOT NULL without a default), and the rows have none for it"


def _type_name(column: Any, connection: Connection) -> str:
    return str(column.compile(connection.dialect))


def _fills_itself(column: Any, sqlite: bool) -> bool:
    given = column.get("default") is not None or column.get("computed") or column.get("identity")
    row_number = sqlite and column.get("primary_key") and str(column["type"]).upper() == "INTEGER"
    return bool(column["nullable"] or given or column.get("autoincrement") is True or row_number)


def _unique_keys(connection: Connection, target: Target) -> list[set[str]]:
    look = inspect(connection)
    primary = look.get_pk_constraint(target.table, target.schema)["constrained_columns"]
    unique = [each["column_names"] for each in look.get_unique_constraints(target.table, target.schema)]
    indexes = [each["column_names"] for each in look.get_indexes(target.table, target.schema)
               if each["unique"] and not _is_partial(each.get("dialect_options", {}))]
    candidates: list[Collection[str | None]] = [primary, *unique, *indexes]
    return [{name for name in names if name} for names in candidates if names and all(names)]


def _is_partial(options: dict[str, Any]) -> bool:
    return any(name.endswith("_where") and value is not None for name, value in options.items())


def _table(target: Target, columns: Iterable[Column[Any]] = ()) -> Table:
    # Everything is quoted: SQLAlchemy does not know every keyword of every version of a database.
    schema = quoted_name(target.schema, quote=True) if target.schema else None
    return Table(target.table, MetaData(), *columns, schema=schema, quote=True)
