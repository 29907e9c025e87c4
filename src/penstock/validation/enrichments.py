"""Enrichments: the table's columns against the stream's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from penstock.topology.enrichment import Enrich
from penstock.topology.model import Topology
from penstock.topology.problems import Problem
from penstock.topology.schema import Schema
from penstock.validation.columns import unknown_column
from penstock.validation.schemas import Schemas, input_schema
from penstock.validation.suggestions import not_found
from penstock.validation.types import comparable, find_column


def check_enrichments(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Keys that the stream or the table has not, columns that would be there twice, and settings that are missing."""
    for operator in topology.operators:
        if isinstance(operator, Enrich):
            yield from _check_settings(operator)
            yield from _check_columns(operator, input_schema(operator, schemas))


def _check_settings(enrich: Enrich) -> Iterator[Problem]:
    if not enrich.table:
        yield _problem(enrich, "enrich needs a table", "write for example `enrich: prices.csv`")
        return
    if not enrich.keys:
        yield _problem(enrich, "the columns by which a tuple finds its rows are missing", "add for example `by: item`")
    if enrich.is_database:
        if not enrich.rows_of:
            yield _problem(enrich, "which table of the database is missing", "add for example `rows_of: prices`")
        if enrich.every <= 0:
            yield _problem(enrich, f"every {enrich.every:g} seconds is impossible", "give more than 0")
    elif enrich.rows_of:
        yield _problem(enrich, "rows_of names a table of a database, and this is a file", "remove it")
    parquet = enrich.format == "parquet" or (enrich.format is None and PurePath(enrich.table).suffix == ".parquet")
    if enrich.schema is None and (enrich.is_database or not parquet):
        yield _problem(enrich, "the columns of the table are missing",
                       "add for example `schema: \"item string, price double\"`")


def _check_columns(enrich: Enrich, read: Schema | None) -> Iterator[Problem]:
    table = enrich.schema
    found = bool(enrich.keys)
    for key in enrich.keys or ():
        ours = find_column(read, key) if read is not None else None
        theirs = find_column(table, key) if table is not None else None
        found = found and ours is not None and theirs is not None
        if read is not None and ours is None:
            yield unknown_column(enrich, key, read)
        if table is not None and theirs is None:
            message = f"operator '{enrich.name}': the table has no column '{key}'"
            yield not_found(enrich.where, message, key, table.names, "it has")
        if ours is not None and theirs is not None and not comparable(ours.type, theirs.type):
            yield _problem(enrich, f"'{key}' is {ours.type} in the stream and {theirs.type} in the table",
                           "declare the same type, or cast it with a select before")
    for name in enrich.added(table.names) if table is not None and found else ():
        if read is not None and find_column(read, name) is not None:
            yield _problem(enrich, f"the stream and the table both have a column '{name}'",
                           "rename the stream's with a select before it")


def _problem(enrich: Enrich, message: str, hint: str = "") -> Problem:
    return Problem(enrich.where, f"operator '{enrich.name}': {message}", hint)
