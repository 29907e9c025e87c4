"""Which column of a table holds a column of rows."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
from sqlalchemy import types as sql

Family = Literal["integer", "float", "decimal", "boolean", "date", "timestamp", "text", "binary", "json",
                 "other", "any"]
"""Column types of databases, roughly; `any` is a column of SQLite's without a type."""

EXACT_DIGITS = 15
"""So many decimal digits survive in SQLite's numbers, which are binary fractions; more are kept as text."""

_FAMILIES: tuple[tuple[type[Any], Family], ...] = (
    (sql.NullType, "any"), (sql.Boolean, "boolean"), (sql.Enum, "other"), (sql.JSON, "json"),
    (sql.Integer, "integer"), (sql.Float, "float"), (sql.Numeric, "decimal"), (sql.DateTime, "timestamp"),
    (sql.Date, "date"), (sql.LargeBinary, "binary"), (sql.BINARY, "binary"), (sql.String, "text"))
"""The first that fits: a Float is a Numeric to SQLAlchemy, an Enum a String."""

_TAKEN_BY: dict[Family, frozenset[Family]] = {
    "integer": frozenset({"integer", "decimal", "float"}),
    "float": frozenset({"float", "decimal"}),
    "decimal": frozenset({"decimal"}),
    "boolean": frozenset({"boolean"}),
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp"}),
    "text": frozenset({"text", "json", "other"}),
    "binary": frozenset({"binary"}),
}
_TAKEN_BY_SQLITE_TOO: dict[Family, frozenset[Family]] = {
    "boolean": frozenset({"integer", "decimal"}),
    "date": frozenset({"text"}),
    "timestamp": frozenset({"text"}),
}
"""SQLite itself has neither booleans nor dates: people declare such columns in these ways."""


def sql_type(arrow: pa.DataType, sqlite: bool) -> sql.TypeEngine[Any]:
    """The type that a new table's column gets for a staged column."""
    match _family_of_rows(arrow):
        case "integer":
            return sql.BigInteger() if arrow.bit_width == 64 else \
                sql.Integer() if arrow.bit_width == 32 else sql.SmallInteger()
        case "float":
            return sql.REAL() if arrow.bit_width == 32 else sql.Double()
        case "decimal":
            exact = not sqlite or arrow.precision <= EXACT_DIGITS
            return sql.Numeric(arrow.precision, arrow.scale) if exact else sql.Text()
        case "boolean":
            return sql.Boolean()
        case "date":
            return sql.Date()
        case "timestamp":
            return sql.DateTime(timezone=arrow.tz is not None)
        case "binary":
            return sql.LargeBinary()
        case _:
            return sql.Text()


def family_of(column: sql.TypeEngine[Any]) -> Family:
    """What kind of values a table's column has."""
    return next((family for kind, family in _FAMILIES if isinstance(column, kind)), "other")


def takes(column: sql.TypeEngine[Any], arrow: pa.DataType, sqlite: bool) -> bool:
    """Whether a table's column holds every value of a staged column, but for numbers out of its range."""
    family, rows = family_of(column), _family_of_rows(arrow)
    if family == "any":
        return True
    if sqlite and rows == "decimal" and arrow.precision > EXACT_DIGITS:
        return family == "text"
    return family in _TAKEN_BY[rows] or (sqlite and family in _TAKEN_BY_SQLITE_TOO.get(rows, ()))


def read_back_type(column: sql.TypeEngine[Any], sqlite: bool) -> pa.DataType:
    """The Arrow type in which a table's column is read again; text for what has no type of its own."""
    match family_of(column):
        case "integer":
            return pa.int64()
        case "float":
            # SQLite calls its doubles REAL.
            return pa.float32() if isinstance(column, sql.REAL) and not sqlite else pa.float64()
        case "decimal":
            precision, scale = getattr(column, "precision", None), getattr(column, "scale", None)
            return pa.decimal128(precision, scale or 0) if precision and precision <= 38 else pa.string()
        case "boolean":
            return pa.bool_()
        case "date":
            return pa.date32()
        case "timestamp":
            return pa.timestamp("us", tz="UTC" if getattr(column, "timezone", False) else None)
        case "binary":
            return pa.binary()
        case _:
            return pa.string()


def _family_of_rows(arrow: pa.DataType) -> Family:
    is_a = pa.types
    tests: tuple[tuple[bool, Family], ...] = (
        (is_a.is_integer(arrow), "integer"), (is_a.is_floating(arrow), "float"), (is_a.is_decimal(arrow), "decimal"),
        (is_a.is_boolean(arrow), "boolean"), (is_a.is_date(arrow), "date"), (is_a.is_timestamp(arrow), "timestamp"),
        (is_a.is_binary(arrow), "binary"))
    return next((family for fits, family in tests if fits), "text")
