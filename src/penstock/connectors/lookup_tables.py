"""From an enrichment in the topology to its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.connectors.base import Place
from penstock.connectors.lookup_table import FileTable, LookupTable
from penstock.topology.enrichment import Enrich
from penstock.topology.model import Topology
from penstock.topology.schema import parse_schema


def enrichments_of(topology: Topology) -> list[Enrich]:
    return [operator for operator in topology.operators if isinstance(operator, Enrich)]


def lookup_table(enrich: Enrich, topology: str, folder: Path) -> LookupTable:
    """The table of an enrichment; raises TopologyError when it makes no sense."""
    place = Place(topology, enrich.name, folder)
    if not enrich.is_database:
        return FileTable(place, enrich.table, enrich.schema, enrich.format, enrich.header)
    # Here, because it imports SQLAlchemy.
    from penstock.connectors.sql_lookup_table import SqlTable

    assert enrich.schema is not None and enrich.rows_of is not None  # validation has seen to it
    return SqlTable(place, enrich.table, enrich.rows_of, enrich.schema, enrich.every)


def enrichment_to_json(enrich: Enrich) -> dict[str, Any]:
    """What `enrichment_from_json` needs to make the same table in another process."""
    schema = None if enrich.schema is None else enrich.schema.ddl
    return {"name": enrich.name, "table": enrich.table, "schema": schema, "format": enrich.format,
            "header": enrich.header, "rows_of": enrich.rows_of, "every": enrich.every}  # fmt: skip


def enrichment_from_json(fields: dict[str, Any]) -> Enrich:
    schema = None if fields["schema"] is None else parse_schema(fields["schema"])
    return Enrich(fields["name"], (), table=fields["table"], schema=schema, format=fields["format"],
                  header=fields["header"], rows_of=fields["rows_of"], every=fields["every"])  # fmt: skip
