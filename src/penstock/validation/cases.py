"""The tests written in a topology: that they speak of its sources, sinks and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.topology.model import Case, StreamRef, Topology
from penstock.topology.problems import Problem
from penstock.topology.schema import Schema
from penstock.validation.schemas import Schemas
from penstock.validation.suggestions import not_found
from penstock.validation.types import find_column

Rows = Mapping[str, tuple[Mapping[str, Any], ...]]


def check_cases(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Rows for sources that are not there, from sinks that are not there, or with unknown columns."""
    sources = {source.name: schemas.get(StreamRef(source.name)) for source in topology.sources}
    sinks = {sink.name: schemas.get(sink.input) for sink in topology.sinks}
    for case in topology.tests:
        yield from _check_rows(case, "source", case.given, sources)
        yield from _check_rows(case, "sink", case.expect, sinks)


def _check_rows(case: Case, role: str, rows: Rows, schemas: Mapping[str, Schema | None]) -> Iterator[Problem]:
    subject = f"test '{case.name}'"
    for name, written in rows.items():
        if name not in schemas:
            yield not_found(case.where, f"{subject}: no {role} '{name}'", name, schemas)
            continue
        schema = schemas[name]
        for column in dict.fromkeys(column for row in written for column in row):
            if schema is not None and find_column(schema, column) is None:
                message = f"{subject}: {role} '{name}' has no column '{column}'"
                yield not_found(case.where, message, column, schema.names)
