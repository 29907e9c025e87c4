"""The columns of every stream, as far as they can be known without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import singledispatch
from itertools import zip_longest

from penstock.topology.enrichment import Enrich
from penstock.topology.join import Join
from penstock.topology.model import (
    Count,
    Custom,
    Explode,
    Operator,
    Select,
    StreamRef,
    Topology,
)
from penstock.topology.problems import Problem
from penstock.topology.schema import Field, Schema
from penstock.topology.window import Window
from penstock.validation.graph import operators_in_order
from penstock.validation.port_schemas import enriched_schema, joined_schema
from penstock.validation.types import UNKNOWN, agree, element_type, find_column, struct_fields
from penstock.validation.window_schemas import window_schema

Schemas = Mapping[StreamRef, Schema | None]


def stream_schemas(topology: Topology) -> dict[StreamRef, Schema | None]:
    """The schema of every stream; None where its columns cannot be known.

    A column whose name is known and whose type is not has the type UNKNOWN, a computed number has
    NUMERIC (see `validation.types`). Where something is wrong, or a source gives no schema, what
    depends on it is None: whoever checks columns skips those, so that one mistake is reported once.
    """
    schemas: dict[StreamRef, Schema | None] = dict.fromkeys(topology.streams())
    for source in topology.sources:
        if schemas.get(StreamRef(source.name)) is None:
            schemas[StreamRef(source.name)] = source.schema
    for operator in operators_in_order(topology):
        if topology.node(operator.name) is not operator:
            continue
        read = input_schema(operator, schemas)
        for port in operator.output_ports():
            schemas[StreamRef(operator.name, port)] = _output_schema(operator, port, read)
        if isinstance(operator, Join):
            schemas[StreamRef(operator.name)] = joined_schema(operator, schemas)
    return schemas


def input_schema(operator: Operator, schemas: Schemas) -> Schema | None:
    """The columns an operator reads: those of its inputs, which must agree; None when they do not.

    None also for inputs that are named ports, see `port_schemas`.
    """
    known = [] if operator.input_ports else [schemas.get(ref) for ref in operator.inputs]
    if not known or known[0] is None:
        return None
    first = known[0]
    if any(other is None or _first_difference(first, other) for other in known[1:]):
        return None
    return first


def check_inputs_agree(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    """Several inputs are read as their union, so they must have the same columns; of named ports, those of each one."""
    for operator in topology.operators:
        for merged in operator.by_port().values() or (operator.inputs,):
            yield from _check_merged(operator, merged, schemas)


def _check_merged(operator: Operator, merged: tuple[StreamRef, ...], schemas: Schemas) -> Iterator[Problem]:
    known = [(ref, schema) for ref in merged if (schema := schemas.get(ref)) is not None]
    for ref, schema in known[1:]:
        first_ref, first = known[0]
        difference = _first_difference(first, schema)
        if difference:
            place, one, other = difference
            hint = "make them equal with a select before it"
            if operator.named_ports and not operator.input_ports:
                hint += f", or name them as ports: from: {{{first_ref.node}: {first_ref}, {ref.node}: {ref}}}"
            yield Problem(
                operator.where,
                f"operator '{operator.name}' merges streams with different columns: column {place} is "
                f"{one} in '{first_ref}' and {other} in '{ref}'",
                hint)
            break


def _first_difference(first: Schema, other: Schema) -> tuple[int, str, str] | None:
    for place, (one, two) in enumerate(zip_longest(first.fields, other.fields), start=1):
        if one is None or two is None or not _same_column(one, two):
            return place, _quoted(one), _quoted(two)
    return None


def _same_column(one: Field, other: Field) -> bool:
    return one.name.lower() == other.name.lower() and agree(one.type, other.type)


def _quoted(field: Field | None) -> str:
    if field is None:
        return "missing"
    return f"'{field.name}'" if field.type == UNKNOWN else f"'{field}'"


@singledispatch
def _output_schema(operator: Operator, port: str, read: Schema | None) -> Schema | None:
    """What an operator emits; most pass their columns on, and of one that could not be read nothing is known."""
    return None if type(operator) is Operator else read


@_output_schema.register
def _(operator: Custom, port: str, read: Schema | None) -> Schema | None:
    emitted = operator.schema_of(port)
    if not operator.keep or emitted is None:
        return emitted
    if read is None:
        return None
    kept = (find_column(read, name) for name in operator.keep)
    return Schema((*(column for column in kept if column is not None), *emitted.fields))


@_output_schema.register
def _(operator: Enrich, port: str, read: Schema | None) -> Schema | None:
    return enriched_schema(operator, read)


@_output_schema.register
def _(operator: Count, port: str, read: Schema | None) -> Schema | None:
    keys = []
    for key in operator.keys or ():
        column = find_column(read, key) if read else None
        keys.append(Field(key, column.type if column else UNKNOWN))
    return Schema((*keys, Field("count", "bigint")))


@_output_schema.register
def _(operator: Window, port: str, read: Schema | None) -> Schema | None:
    return window_schema(operator, read)


@_output_schema.register
def _(operator: Explode, port: str, read: Schema | None) -> Schema | None:
    if read is None:
        return None
    from penstock.validation.expression_types import type_of
    from penstock.validation.sql import parse_expression

    tree = parse_expression(operator.expression or "").tree
    element = element_type(type_of(tree, read)) if tree is not None else UNKNOWN
    others = (field for field in read.fields if field.name.lower() != operator.alias.lower())
    return Schema((*others, Field(operator.alias, element)))


@_output_schema.register
def _(operator: Select, port: str, read: Schema | None) -> Schema | None:
    columns: list[Field] = []
    for text in operator.columns or ():
        selected = _selected(text, read)
        if selected is None:
            return None
        columns.extend(selected)
    return Schema(tuple(columns)) if columns else None


def _selected(text: str, read: Schema | None) -> tuple[Field, ...] | None:
    """The columns that one entry of a select makes; None when their names cannot be known."""
    from sqlglot import exp

    from penstock.validation.expression_types import column_type, type_of
    from penstock.validation.sql import parse_expression

    tree = parse_expression(text).tree
    if isinstance(tree, exp.Star):
        return read.fields if read else None
    if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
        whole = exp.Column(this=tree.args["table"].copy())
        inner = struct_fields(column_type(whole, read))
        return inner.fields if inner else None
    if not isinstance(tree, exp.Alias | exp.Column):
        return None
    return (Field(tree.alias_or_name, type_of(tree, read)),)
