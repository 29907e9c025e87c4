"""The columns that a window gives."""

from __future__ import annotations

from penstock.errors import TopologyError
from penstock.topology.aggregates import Aggregate, parse_aggregate
from penstock.topology.model import DEFAULT_PORT
from penstock.topology.schema import Field, Schema
from penstock.topology.window import WINDOW_END, WINDOW_FIRST, WINDOW_LAST, WINDOW_START, Window
from penstock.validation.types import NUMERIC, UNKNOWN, family, find_column

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FRACTION = ("float", "double")


def window_schema(window: Window, read: Schema | None) -> Schema | None:
    """The keys, the bounds of the window, and what is computed; None where something of that cannot be read."""
    if window.code is not None:
        return dict(window.emits).get(DEFAULT_PORT)
    try:
        aggregates = [parse_aggregate(text) for text in window.compute or ()]
    except TopologyError:
        return None
    return Schema((
        *(_key(name, read) for name in window.keys),
        *(Field(name, kind) for name, kind in bounds_of(window).items()),
        *(Field(each.name, _type(each, read)) for each in aggregates),
    ))


def bounds_of(window: Window) -> dict[str, str]:
    """The columns that say where a window begins and ends, with their types."""
    if window.counts_tuples:
        return {WINDOW_FIRST: "bigint", WINDOW_LAST: "bigint"}
    return {WINDOW_START: "timestamp", WINDOW_END: "timestamp"}


def _key(name: str, read: Schema | None) -> Field:
    column = find_column(read, name) if read else None
    return Field(name, column.type if column else UNKNOWN)


def _type(aggregate: Aggregate, read: Schema | None) -> str:
    match aggregate.function:
        case "count" | "approx_distinct":
            return "bigint"
        case "stddev" | "percentile":
            return "double"
        case "top":
            return _array_of_tuples(read)
    value = _value_type(aggregate, read)
    match aggregate.function:
        case "collect":
            return UNKNOWN if value in (UNKNOWN, NUMERIC) else f"array<{value}>"
        case "sum":
            return "bigint" if value in _WHOLE else "double" if value in _FRACTION else NUMERIC
        case "avg":
            return "double" if value in (*_WHOLE, *_FRACTION) else NUMERIC
    return value


def _value_type(aggregate: Aggregate, read: Schema | None) -> str:
    from penstock.validation.expression_types import type_of
    from penstock.validation.sql import parse_expression

    tree = parse_expression(aggregate.value or "").tree
    return UNKNOWN if tree is None else type_of(tree, read)


def _array_of_tuples(read: Schema | None) -> str:
    if read is None or any(family(field.type) == "unknown" or field.type == NUMERIC for field in read.fields):
        return UNKNOWN
    return f"array<struct<{','.join(f'{field.name}:{field.type}' for field in read.fields)}>>"
