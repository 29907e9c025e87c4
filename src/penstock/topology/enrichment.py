"""Enrichment: columns added to a stream's tuples from a table that changes now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.topology.join import KINDS
from penstock.topology.model import Operator, option
from penstock.topology.schema import Schema

FORMATS = ("csv", "json", "parquet")


@dataclass(frozen=True)
class Enrich(Operator):
    """Add the columns of a table to every tuple, found by a key; the table is read again when it changes."""

    keyword: ClassVar[str] = "enrich"
    argument: ClassVar[str] = "table"

    table: str = option("A file (CSV, JSON lines, Parquet), or the address of a database.", type="string")
    keys: tuple[str, ...] = option("The columns by which a tuple finds its rows; the table has them too.",
                                   type="columns", key="by", required=True)
    schema: Schema | None = option("The columns of the table: `item string, price double`.", type="schema")
    kind: str = option("`inner`: only tuples that find a row. `left`: all; without a row, its columns are null.",
                       default="inner", type="choice", choices=KINDS)
    rows_of: str | None = option("Of a database, the table to read.", type="string", key="rows_of")
    every: float = option("Of a database, how often to look whether the table has changed.", default=60.0,
                          type="duration")
    format: str | None = option("How the file is written; by default told from its extension.", type="choice",
                                choices=FORMATS)
    header: bool = option("Whether the first line of a CSV file names its columns.", default=False, type="boolean")

    @property
    def keeps_left(self) -> bool:
        """Whether a tuple that finds no row goes on."""
        return self.kind == "left"

    @property
    def is_database(self) -> bool:
        return "://" in self.table

    def added(self, table: Sequence[str]) -> list[str]:
        """The columns that come from a table with these: all but the keys."""
        keys = {key.lower() for key in self.keys or ()}
        return [name for name in table if name.lower() not in keys]
