"""Python values made to fit a schema, strictly: a number is no text, and nothing is rounded."""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.arrow_types import arrow_schema
from penstock.connectors.records.lines import Unfit
from penstock.topology.schema import Schema

Fit = Callable[[Any], Any]
"""Gives the value as Arrow takes it; raises ValueError when it is of another type."""

_MOST_SHOWN = 100


class RowFormat:
    """Rows of Python values, each a sequence in the schema's order or a mapping by column name.

    Dates and timestamps may be ISO text, binary may be base64 text, as in JSON; a timestamp without a
    zone is UTC. A column that a mapping lacks is null.
    """

    def __init__(self, schema: Schema, ignore_unknown: bool = False) -> None:
        self.schema = arrow_schema(schema)
        self._declared = schema
        self._ignore_unknown = ignore_unknown
        self._fits = [_fit(field.type) for field in self.schema]

    def batch(self, rows: Sequence[Any]) -> pa.RecordBatch:
        """One row each, in order; raises Unfit when any of them does not fit."""
        values = [self._in_order(row) for row in rows]
        columns = zip(*values, strict=True) if values else ([] for _ in self._fits)
        arrays = [self._column(index, column) for index, column in enumerate(columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _in_order(self, row: Any) -> Sequence[Any]:
        names = self._declared.names
        if isinstance(row, Mapping):
            unknown = [name for name in row if name not in names]
            if unknown and not self._ignore_unknown:
                raise Unfit(f"no column '{unknown[0]}' in the schema '{self._declared}'")
            return [row.get(name) for name in names]
        values = row if isinstance(row, tuple | list) else (row,)
        if len(values) != len(names):
            raise Unfit(f"{len(names)} fields expected, {len(values)} found")
        return values

    def _column(self, index: int, values: Sequence[Any]) -> pa.Array:
        fit = self._fits[index]
        field = self.schema.field(index)
        try:
            return pa.array([None if value is None else fit(value) for value in values], field.type)
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            shown = repr(values[0])
            shown = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "…"
            declared = self._declared.fields[index]
            raise Unfit(f"column '{declared.name}': {shown} is not {declared.type}") from None


def _fit(arrow: pa.DataType) -> Fit:
    types = pa.types
    if types.is_integer(arrow):
        return _integer
    if types.is_floating(arrow):
        return _floating
    if types.is_list(arrow):
        return _array(_fit(arrow.value_type))
    if types.is_map(arrow):
        return _map(arrow)
    if types.is_struct(arrow):
        return _struct({field.name: _fit(field.type) for field in arrow})
    by_test: list[tuple[Callable[[pa.DataType], bool], Fit]] = [
        (types.is_string, _only(str)),
        (types.is_boolean, _only(bool, np.bool_)),
        (types.is_decimal, _decimal),
        (types.is_date, _date),
        (lambda type: type == pa.timestamp("us"), _naive_timestamp),
        (types.is_timestamp, _timestamp),
        (types.is_binary, _binary),
    ]
    return next(fit for test, fit in by_test if test(arrow))


def _only(*accepted: type) -> Fit:
    def fit(value: Any) -> Any:
        if not isinstance(value, accepted):
            raise ValueError
        return value

    return fit


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError
    return int(value)


def _floating(value: Any) -> float:
    numbers = int | float | decimal.Decimal | np.integer | np.floating
    if isinstance(value, bool) or not isinstance(value, numbers):
        raise ValueError
    return float(value)


def _decimal(value: Any) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | decimal.Decimal):
        raise ValueError
    try:
        number = decimal.Decimal(str(value) if isinstance(value, float) else value)
    except decimal.InvalidOperation:
        raise ValueError from None
    if not number.is_finite():
        raise ValueError
    return number


def _date(value: Any) -> datetime.date:
    if isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    raise ValueError


def _timestamp(value: Any) -> datetime.datetime:
    moment = _moment(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _naive_timestamp(value: Any) -> datetime.datetime:
    moment = _moment(value)
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _moment(value: Any) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime.datetime):
        raise ValueError
    return moment


def _binary(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if not isinstance(value, str):
        raise ValueError
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError from None


def _array(item: Fit) -> Fit:
    def fit(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise ValueError
        return [None if element is None else item(element) for element in value]

    return fit


def _map(arrow: pa.MapType) -> Fit:
    key, item = _fit(arrow.key_type), _fit(arrow.item_type)
    # The keys of a JSON object are text, whatever they stand for.
    is_number = (pa.types.is_integer(arrow.key_type), int), (pa.types.is_floating(arrow.key_type), float)
    read_key = next((read for applies, read in is_number if applies), None)

    def fit(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, Mapping):
            raise ValueError
        keys = (read_key(name) if read_key and isinstance(name, str) else name for name in value)
        items = (None if element is None else item(element) for element in value.values())
        return [(key(name), element) for name, element in zip(keys, items, strict=True)]

    return fit


def _struct(fields: Mapping[str, Fit]) -> Fit:
    def fit(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError
        present = {name: value.get(name) for name in fields}
        return {name: None if part is None else fields[name](part) for name, part in present.items()}

    return fit
