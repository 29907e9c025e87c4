"""An `sql` sink's life at its database: claim the table, commit epochs, read them back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from sqlalchemy import Connection, cast, select
from sqlalchemy import types as sql

from penstock.connectors.sql_database import Database, database_of
from penstock.connectors.sql_ledger import (
    NO_EPOCH,
    Claim,
    advance,
    create_ledger,
    ledger_exists,
    other_claims,
    read_claim,
    write_claim,
)
from penstock.connectors.sql_rows import write_rows
from penstock.connectors.sql_staging import staged_batches, staged_schema
from penstock.connectors.sql_table import (
    count_rows,
    create_table,
    described_table,
    empty_table,
    has_rows,
    hold_schema,
    is_sqlite,
    require_fit,
    require_unique_key,
    table_exists,
)
from penstock.connectors.sql_target import Target
from penstock.connectors.sql_types import read_back_type
from penstock.errors import ConnectorError

_READ_ROWS = 10_000


def open_target(target: Target, fresh: bool) -> None:
    """Claim the table, or go on with it; raises ConnectorError when it is not this sink's to write."""
    with database_of(target).transaction() as connection:
        hold_schema(connection)
        exists = table_exists(connection, target)
        create_ledger(connection, target)
        claim = read_claim(connection, target)
        if fresh:
            _begin(connection, target, claim, exists)
        else:
            require_continuation(target, claim, exists)
        if exists:
            require_unique_key(connection, target)


def _begin(connection: Connection, target: Target, claim: Claim | None, exists: bool) -> None:
    filled = exists and has_rows(connection, target)
    if target.existing != "keep":
        others = other_claims(connection, target)
        counting = filled and target.existing == "refuse"
        require_own_table(target, claim, others, count_rows(connection, target) if counting else 0)
        if filled:
            empty_table(connection, target)
    write_claim(connection, target, owned=target.existing != "keep", evict=target.existing == "overwrite")


def require_own_table(target: Target, claim: Claim | None, others: Sequence[Claim], rows: int) -> None:
    """Raises ConnectorError unless a fresh start may remove the `rows` in the table.

    More rows than the sink has written are somebody else's, whoever made the table.
    """
    if target.existing == "overwrite":
        return
    choice = ("name another table, or set existing: keep to write beside what is there, or existing: overwrite to "
              "replace it")
    for other in others:
        raise ConnectorError(f"{target.words} is written by sink '{other.sink}' of topology '{other.topology}': "
                             f"{choice}")
    written = claim.rows if claim is not None and claim.owned and claim.table == target.table else 0
    if rows > written:
        whose = f"of which this sink has written {written}" if written else "none of them written by this sink"
        raise ConnectorError(f"{target.words} holds {rows} {'row' if rows == 1 else 'rows'}, {whose}: {choice}")


def require_continuation(target: Target, claim: Claim | None, exists: bool) -> None:
    """Raises ConnectorError when what earlier epochs wrote is not there any more."""
    if claim is None:
        raise ConnectorError(f"{target.shown} knows nothing of the epochs that sink '{target.sink}' of topology "
                             f"'{target.topology}' has written: correct the address, put the database back, or start "
                             "the topology afresh")
    if claim.table != target.table:
        raise ConnectorError(f"sink '{target.sink}' has written up to epoch {claim.epoch} to table '{claim.table}' of "
                             f"{target.shown}, not to '{target.table_name}': name that table, or start the topology "
                             "afresh")
    if claim.rows and not exists:
        raise ConnectorError(f"{target.words}, to which {claim.rows} rows were written up to epoch {claim.epoch}, is "
                             "gone: put it back, or start the topology afresh")


def last_epoch(target: Target) -> int:
    """The last epoch that the sink has committed to its table; NO_EPOCH when there is none."""
    with database_of(target).transaction() as connection:
        claim = read_claim(connection, target) if ledger_exists(connection, target) else None
        return NO_EPOCH if claim is None or claim.table != target.table else claim.epoch


def commit_epoch(target: Target, epoch: int, parts: list[Path], rows: int) -> None:
    """Write an epoch's rows and note the epoch in one transaction, unless that was done already."""
    database = database_of(target)

    def write(connection: Connection) -> pa.Schema | None:
        if not advance(connection, target, epoch, rows) or not parts:
            return None
        schema = staged_schema(parts[0], epoch)
        _prepare_table(database, connection, target, schema)
        write_rows(connection, target, schema.names, staged_batches(parts, epoch))
        return schema

    schema = database.patiently(epoch, write)
    if schema is not None:
        database.known_tables[_table_key(target)] = schema


def _prepare_table(database: Database, connection: Connection, target: Target, schema: pa.Schema) -> None:
    if database.known_tables.get(_table_key(target)) == schema:
        return
    if table_exists(connection, target):
        require_fit(connection, target, schema)
        return
    hold_schema(connection)
    if table_exists(connection, target):
        require_fit(connection, target, schema)
    else:
        create_table(connection, target, schema)


def _table_key(target: Target) -> tuple[str, ...]:
    return (target.table_name, *target.key)


def read_table(target: Target, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The committed rows, a batch at a time: those columns, or all when none are named."""
    with database_of(target).transaction() as connection:
        if not table_exists(connection, target):
            return
        table = described_table(connection, target)
        chosen = [column for column in table.columns if not columns or column.name in columns]
        sqlite = is_sqlite(connection)
        schema = pa.schema([(column.name, read_back_type(column.type, sqlite)) for column in chosen])
        # What has no Arrow type of its own is read as text.
        readable = [cast(column, sql.Text()) if field.type == pa.string() else column
                    for column, field in zip(chosen, schema, strict=True)]
        result = connection.execution_options(stream_results=True).execute(select(*readable))
        for rows in result.partitions(_READ_ROWS):
            columnwise = zip(*rows, strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columnwise, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
