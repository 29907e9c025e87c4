"""The columns of an operator's named input ports, and of what joins and enrichments make of them."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.topology.enrichment import Enrich
from penstock.topology.join import Join, joined_columns
from penstock.topology.model import Operator, StreamRef
from penstock.topology.schema import Field, Schema

StreamSchemas = Mapping[StreamRef, Schema | None]


def port_schemas(operator: Operator, schemas: StreamSchemas) -> dict[str, Schema | None]:
    """The columns of each named input port; None where they cannot be known."""
    return {port: schemas.get(refs[0]) for port, refs in operator.by_port().items()}


def joined_schema(operator: Join, schemas: StreamSchemas) -> Schema | None:
    """The columns of a join; None where those of a port cannot be known."""
    ports = port_schemas(operator, schemas)
    known = {port: schema for port, schema in ports.items() if schema is not None}
    if len(known) != len(ports) or not known:
        return None
    types = {(port, field.name): field.type for port, schema in known.items() for field in schema.fields}
    columns = joined_columns({port: schema.names for port, schema in known.items()})
    return Schema(tuple(Field(each.name, types[each.port, each.column]) for each in columns))


def enriched_schema(operator: Enrich, read: Schema | None) -> Schema | None:
    """The columns of an enrichment; None where those of the stream or of the table cannot be known."""
    if read is None or operator.schema is None:
        return None
    added = operator.added(operator.schema.names)
    return Schema((*read.fields, *(field for field in operator.schema.fields if field.name in added)))
