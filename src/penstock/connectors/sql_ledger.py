"""The table `penstock_epochs`: how far each sink is, in the same transactions as its rows.

One row for each sink, beside the table it writes to. Its update is also the lock: of two replicas that
commit the same epoch, the second waits for the first, and then finds the epoch done.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    MetaData,
    Table,
    Text,
    and_,
    delete,
    insert,
    inspect,
    or_,
    select,
    update,
)

from penstock.connectors.sql_target import Target
from penstock.errors import ConnectorError

LEDGER = "penstock_epochs"
NO_EPOCH = -1


@dataclass(frozen=True)
class Claim:
    """What is known of a sink: its table, its last epoch, and how many rows it has written."""

    topology: str
    sink: str
    table: str
    owned: bool
    """Whether all rows of the table are this sink's, so that a fresh start may remove them."""
    epoch: int = NO_EPOCH
    rows: int = 0


@lru_cache
def ledger(schema: str | None) -> Table:
    """The ledger of one schema of a database."""
    return Table(
        LEDGER, MetaData(schema=schema),
        Column("topology", Text, primary_key=True), Column("sink", Text, primary_key=True),
        Column("table_name", Text, nullable=False), Column("owned", Boolean, nullable=False),
        Column("epoch", BigInteger, nullable=False), Column("rows", BigInteger, nullable=False),
        Column("committed_at", DateTime(timezone=True)))


def create_ledger(connection: Connection, target: Target) -> None:
    ledger(target.schema).create(connection, checkfirst=True)


def ledger_exists(connection: Connection, target: Target) -> bool:
    return inspect(connection).has_table(LEDGER, schema=target.schema)


def read_claim(connection: Connection, target: Target) -> Claim | None:
    """What the ledger says of this sink."""
    return next(iter(_claims(connection, target, _is_ours(target))), None)


def other_claims(connection: Connection, target: Target) -> list[Claim]:
    """Other sinks that write to the same table."""
    table = ledger(target.schema).c
    others = or_(table.topology != target.topology, table.sink != target.sink)
    return _claims(connection, target, and_(table.table_name == target.table, others))


def write_claim(connection: Connection, target: Target, owned: bool, evict: bool) -> None:
    """Begin anew for this sink; with `evict`, forget other sinks that wrote to the table."""
    table = ledger(target.schema)
    outdated = or_(_is_ours(target), table.c.table_name == target.table) if evict else _is_ours(target)
    connection.execute(delete(table).where(outdated))
    connection.execute(insert(table).values(
        topology=target.topology, sink=target.sink, table_name=target.table, owned=owned, epoch=NO_EPOCH, rows=0,
        committed_at=None))


def advance(connection: Connection, target: Target, epoch: int, rows: int) -> bool:
    """Note that `epoch` is written with so many rows; False when it or a later one is there already.

    Holds the sink's row until the transaction ends, so nobody else can be writing the same epoch.
    """
    table = ledger(target.schema)
    advanced = connection.execute(
        update(table)
        .where(_is_ours(target), table.c.table_name == target.table, table.c.epoch < epoch)
        .values(epoch=epoch, rows=table.c.rows + rows, committed_at=datetime.datetime.now(datetime.UTC)))
    if advanced.rowcount:
        return True
    claim = read_claim(connection, target)
    if claim is None or claim.table != target.table:
        raise ConnectorError(f"{LEDGER} in {target.shown}, which says what is in '{target.table_name}', no longer "
                             f"speaks of sink '{target.sink}': put it back, or start the topology afresh")
    return False


def _is_ours(target: Target) -> ColumnElement[bool]:
    table = ledger(target.schema).c
    return and_(table.topology == target.topology, table.sink == target.sink)


def _claims(connection: Connection, target: Target, chosen: ColumnElement[bool]) -> list[Claim]:
    table = ledger(target.schema).c
    rows = connection.execute(
        select(table.topology, table.sink, table.table_name, table.owned, table.epoch, table.rows).where(chosen))
    return [Claim(*row) for row in rows]
