"""Penstock's types in Arrow, and Arrow's in Penstock.

Timestamps are microseconds in UTC, as Spark keeps them; `timestamp_ntz` has no zone.
"""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.errors import ConnectorError
from penstock.topology.schema import Field, Schema, split_top_level

_SIMPLE: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}

_FOREIGN: dict[pa.DataType, str] = {
    **{arrow: name for name, arrow in _SIMPLE.items()},
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date64(): "date",
}

_DECIMAL = re.compile(r"decimal(?:\((\d+)(?:,(\d+))?\))?$")


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of a type in Spark's spelling, as `parse_type` gives it."""
    if name in _SIMPLE:
        return _SIMPLE[name]
    if decimal := _DECIMAL.match(name):
        return pa.decimal128(int(decimal[1] or 10), int(decimal[2] or 0))
    kind, inner = name.split("<", 1)
    parts = split_top_level(inner[:-1])
    if kind == "array":
        return pa.list_(arrow_type(parts[0]))
    if kind == "map":
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    fields = (part.split(":", 1) for part in parts)
    return pa.struct([pa.field(field, arrow_type(inner_type)) for field, inner_type in fields])


def arrow_schema(schema: Schema) -> pa.Schema:
    """The schema of the batches that carry tuples of `schema`."""
    return pa.schema([pa.field(field.name, arrow_type(field.type)) for field in schema.fields])


def penstock_type(arrow: pa.DataType) -> str:
    """The type that holds every value of an Arrow type; raises ConnectorError where there is none."""
    if arrow in _FOREIGN:
        return _FOREIGN[arrow]
    if pa.types.is_dictionary(arrow):
        return penstock_type(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return "timestamp" if arrow.tz else "timestamp_ntz"
    if pa.types.is_decimal(arrow) and arrow.precision <= 38:
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_fixed_size_binary(arrow):
        return "binary"
    if pa.types.is_map(arrow):
        return f"map<{penstock_type(arrow.key_type)},{penstock_type(arrow.item_type)}>"
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return f"array<{penstock_type(arrow.value_type)}>"
    if pa.types.is_struct(arrow):
        return "struct<" + ",".join(f"{field.name}:{penstock_type(field.type)}" for field in arrow) + ">"
    raise ConnectorError(f"columns of type {arrow} cannot be read; convert them, for example to string")


def penstock_schema(arrow: pa.Schema) -> Schema:
    """The schema of a file that brings its own; raises ConnectorError that names the column."""
    fields = []
    for field in arrow:
        try:
            fields.append(Field(field.name, penstock_type(field.type)))
        except ConnectorError as error:
            raise ConnectorError(f"column '{field.name}': {error}") from error
    return Schema(tuple(fields))
