"""Staged rows into a table, in the order they were staged: SQLite row by row in C, PostgreSQL by COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
from sqlalchemy import Connection

from penstock.connectors.sql_table import is_sqlite
from penstock.connectors.sql_target import Target

_STAGED = "penstock_staged"
_ORDER = "penstock_order"
_NO_HEADER = pa_csv.WriteOptions(include_header=False, quoting_style="needed")


def write_rows(connection: Connection, target: Target, names: list[str], batches: Iterable[pa.RecordBatch]) -> None:
    """Append or upsert all batches; of several rows with the same key the last one stays."""
    # The driver's own connection: SQLAlchemy has no COPY, and looks at every value.
    driver: Any = connection.connection.driver_connection
    if is_sqlite(connection):
        _insert_in_sqlite(driver, target, names, batches)
    elif target.mode == "upsert":
        _upsert_by_copy(driver, target, names, batches)
    else:
        _copy(driver, _table(target), names, batches)


def _insert_in_sqlite(driver: Any, target: Target, names: list[str], batches: Iterable[pa.RecordBatch]) -> None:
    statement = (f"INSERT INTO {_table(target)} ({_list(names)}) VALUES ({', '.join('?' for _ in names)})"
                 f"{_on_conflict(target, names)}")
    for batch in batches:
        driver.executemany(statement, zip(*map(sqlite_values, batch.columns), strict=True))


def _upsert_by_copy(driver: Any, target: Target, names: list[str], batches: Iterable[pa.RecordBatch]) -> None:
    columns, key = _list(names), _list(target.key)
    order = next(name for name in (_ORDER, f"{_ORDER}_", f"{_ORDER}__") if name not in names)
    # Made like the table but without its constraints: rows of the same key stand there side by side.
    driver.execute(f"CREATE TEMPORARY TABLE {_STAGED} ON COMMIT DROP AS "
                   f"SELECT {columns} FROM {_table(target)} WHERE false")
    driver.execute(f"ALTER TABLE {_STAGED} ADD COLUMN {order} bigint GENERATED ALWAYS AS IDENTITY")
    _copy(driver, _STAGED, names, batches)
    driver.execute(f"INSERT INTO {_table(target)} ({columns}) SELECT DISTINCT ON ({key}) {columns} FROM {_STAGED} "
                   f"ORDER BY {key}, {order} DESC{_on_conflict(target, names)}")


def _copy(driver: Any, table: str, names: list[str], batches: Iterable[pa.RecordBatch]) -> None:
    with driver.cursor() as cursor, cursor.copy(f"COPY {table} ({_list(names)}) FROM STDIN (FORMAT csv)") as copy:
        for batch in batches:
            copy.write(csv_lines(batch))


def _on_conflict(target: Target, names: list[str]) -> str:
    if target.mode != "upsert":
        return ""
    changes = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in names if name not in target.key)
    return f" ON CONFLICT ({_list(target.key)}) {f'DO UPDATE SET {changes}' if changes else 'DO NOTHING'}"


def _table(target: Target) -> str:
    return ".".join(_quoted(part) for part in (target.schema, target.table) if part)


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(_quoted, names))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def csv_lines(batch: pa.RecordBatch) -> Any:
    """The rows as PostgreSQL's CSV: nothing is NULL, and `""` is the empty string."""
    text = pa.RecordBatch.from_arrays([_for_csv(column) for column in batch.columns], names=batch.schema.names)
    out = pa.BufferOutputStream()
    pa_csv.write_csv(text, out, _NO_HEADER)
    return out.getvalue()


def _for_csv(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return pa.array([None if value is None else "\\x" + value.hex() for value in column.to_pylist()], pa.string())
    return column.cast(pa.string()) if pa.types.is_decimal(column.type) else column


def sqlite_values(column: pa.Array) -> list[Any]:
    """The values as SQLite takes them: dates, times and decimals are text, in UTC."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.string())
    elif pa.types.is_date(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    values: list[Any] = column.to_pylist()
    return values
