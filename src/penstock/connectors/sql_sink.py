"""The `sql` sink: rows into a table of SQLite or PostgreSQL, an epoch and its record in one transaction.

Executors stage rows as Arrow files; the driver writes them. SQLAlchemy is imported only where a database
is touched: executors and topologies without this sink are spared a third of a second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from penstock.connectors.base import EVERY_GUARANTEE, Place, SinkConnector, Staged
from penstock.connectors.file_sink import in_plain_words
from penstock.connectors.sql_staging import stage_part
from penstock.connectors.sql_target import EXISTING, MODES, Existing, Mode, Target
from penstock.connectors.staged_parts import clear_leftovers, discard_parts, leave_staging, new_part
from penstock.errors import TopologyError
from penstock.topology.catalogue import REQUIRED, Kind, Option
from penstock.topology.model import Delivery

DEFAULT_STAGING = ".penstock/.staging"


@dataclass(frozen=True)
class SqlSink(SinkConnector):
    """Write rows to a table, whole epochs at a time, each epoch once."""

    describe: ClassVar[Kind] = Kind(
        "sql", "sink", "Write tuples to a table of an SQLite or PostgreSQL database.",
        Option("sql", "string", "The database: `sqlite:///out/reach.db` or `postgresql://user:${env:PW}@host/db`.",
               default=REQUIRED),
        (Option("table", "string", "The table, or `schema.table` in PostgreSQL; made when it is absent.",
                default=REQUIRED),
         Option("mode", "choice", "Add every row, or replace the row that has the same key.", default="append",
                choices=MODES),
         Option("key", "columns", "The columns that tell rows apart, for `mode: upsert`."),
         Option("existing", "choice", "What to do at a fresh start with rows that this sink did not write: stop, write "
                "beside them and never remove any row, or remove them.", default="refuse", choices=EXISTING),
         Option("patience", "duration", "How long a commit waits for a database that went away or is locked.",
                default=30.0, minimum=0),
         Option("staging", "path", "A folder where rows wait for their commit; on a cluster one that all machines "
                "see.", default=DEFAULT_STAGING)))
    keeps: ClassVar[frozenset[Delivery]] = EVERY_GUARANTEE

    target: Target
    staging: Path
    """This sink's own folder for staged rows."""
    columns: tuple[str, ...] = ()
    """The columns that it will be given; see `with_columns`."""
    file: Path | None = None
    """The database file of SQLite."""
    run: str = ""
    """Whose rows are staged; see `Place`."""

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any]) -> SqlSink:
        from penstock.connectors.sql_address import SQLITE, read_address

        address = read_address(place, options.get("sql"))
        schema, table = _table_name(place.name, options.get("table"), address.system == SQLITE)
        mode, key = _mode_and_key(place.name, options)
        existing = options.get("existing") or "refuse"
        if existing not in EXISTING:
            raise TopologyError(f"sink '{place.name}': existing is {existing!r}; use {', '.join(EXISTING)}")
        patience = options.get("patience")
        target = Target(place.topology, place.name, address.url, address.shown, table, schema, mode, key,
                        cast(Existing, existing), 30.0 if patience is None else float(patience))
        staging = place.resolve(options.get("staging") or DEFAULT_STAGING) / _own_name(target)
        return cls(target, staging, file=address.file, run=place.run)

    def with_columns(self, names: Sequence[str]) -> SqlSink:
        """The same sink, knowing its columns; raises TopologyError when the key is not among them."""
        missing = [name for name in self.target.key if name not in names]
        if missing:
            raise TopologyError(f"sink '{self.target.sink}': the key column '{missing[0]}' is not among the columns of "
                                f"its stream: {', '.join(names)}")
        return replace(self, columns=tuple(names))

    def open(self, fresh: bool) -> None:
        from penstock.connectors.sql_epochs import open_target

        if self.file is not None:
            with in_plain_words(self.file, self.target.shown):
                self.file.parent.mkdir(parents=True, exist_ok=True)
        open_target(self.target, fresh)
        with in_plain_words(self.staging, str(self.staging)):
            self.staging.mkdir(parents=True, exist_ok=True)
            clear_leftovers(self.staging.glob("*.arrow"), self.run, fresh)

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        part = new_part(self.staging, self.run, ".arrow")
        with in_plain_words(self.staging, str(self.staging)):
            rows = stage_part(part, batches, self.target.key)
        return Staged(rows, {"part": str(part)}) if rows else Staged(0)

    def commit(self, epoch: int, staged: list[Staged]) -> None:
        from penstock.connectors.sql_epochs import commit_epoch

        parts = [Path(part.detail["part"]) for part in staged if part.rows]
        commit_epoch(self.target, epoch, parts, sum(part.rows for part in staged))
        self.abort(staged)

    def abort(self, staged: list[Staged]) -> None:
        discard_parts(staged)

    def forget_staged(self, run: str) -> None:
        clear_leftovers(self.staging.glob("*.arrow"), run, fresh=False)

    def close(self) -> None:
        """Close the connections, and remove the staging folder unless a sibling still has rows in it."""
        from penstock.connectors.sql_database import close_database

        close_database(self.target)
        leave_staging(self.staging)

    def last_epoch(self) -> int:
        from penstock.connectors.sql_epochs import last_epoch

        return -1 if self.file is not None and not self.file.exists() else last_epoch(self.target)

    def read_back(self) -> Iterator[pa.RecordBatch]:
        """Everything in the table, for comparing runs."""
        from penstock.connectors.sql_epochs import read_table

        return read_table(self.target, self.columns)

    def redirected(self, folder: Path) -> SqlSink:
        """The same sink on a scratch SQLite database in `folder`."""
        from penstock.connectors.sql_address import read_address

        address = read_address(Place(self.target.topology, self.target.sink, folder), f"sqlite:///{self.target.sink}.db")
        target = replace(self.target, url=address.url, shown=address.shown, schema=None, existing="refuse")
        return replace(self, target=target, file=address.file, staging=folder / "staging" / _own_name(target))


def _table_name(sink: str, written: object, sqlite: bool) -> tuple[str | None, str]:
    if not isinstance(written, str) or not written.strip():
        raise TopologyError(f"sink '{sink}': sql needs the name of a table: table: {sink}")
    schema, dot, table = written.strip().rpartition(".")
    if not dot:
        return None, table
    if sqlite:
        raise TopologyError(f"sink '{sink}': SQLite has no schemas: write table: {table}")
    if not schema or not table or "." in schema:
        raise TopologyError(f"sink '{sink}': '{written}' is not a table: write a name, or schema.name")
    return schema, table


def _mode_and_key(sink: str, options: Mapping[str, Any]) -> tuple[Mode, tuple[str, ...]]:
    mode = options.get("mode") or "append"
    if mode not in MODES:
        raise TopologyError(f"sink '{sink}': mode is {mode!r}; use {', '.join(MODES)}")
    given = options.get("key") or ()
    key = tuple(name.strip() for name in given.split(",")) if isinstance(given, str) else tuple(given)
    if mode == "upsert" and not key:
        raise TopologyError(f"sink '{sink}': mode: upsert needs the columns that tell rows apart: key: [id]")
    if mode == "append" and key:
        raise TopologyError(f"sink '{sink}': a key is only for mode: upsert; set that, or leave the key out")
    return cast(Mode, mode), key


def _own_name(target: Target) -> str:
    return hashlib.sha256(repr((target.topology, target.sink)).encode()).hexdigest()[:16]
