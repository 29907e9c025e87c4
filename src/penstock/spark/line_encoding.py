"""A row as a line of text, made natively: for sinks that take JSON, CSV or plain text.

Spark's own `to_csv` takes about two thirds of a microsecond for a row of two numbers, four times as long as putting
their digits together, which is also compiled into the stage; `to_json` takes as long for a number and a text. So only
what may need quotes goes through them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
)

from penstock.connectors.base import Encoding

_CSV_AS_RFC_4180 = {
    "emptyValue": '""',
    "escape": '"',
    # Spark would trim what is written.
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
_NEEDS_NO_QUOTES = (ByteType, ShortType, IntegerType, LongType, BooleanType)
_PLAIN_NAME = re.compile(r"[\w .-]+")
"""A name that JSON writes as it is."""
_END = "\n"


def line_of(frame: DataFrame, encoding: Encoding) -> Column | None:
    """The line for each row of `frame`, with its end; None for an encoding that is no text."""
    match encoding:
        case "json":
            return F.concat(*_json_pieces(frame.schema.fields), F.lit(_END))
        case "csv":
            return F.concat(*_csv_pieces(frame.schema.fields), F.lit(_END))
        case "text":
            return F.concat(_column(frame.schema.fields[0]).cast("string"), F.lit(_END))
    return None


def _json_pieces(fields: Sequence[StructField]) -> Iterator[Column]:
    """What a line consists of; null is written too."""
    if not all(_is_plain(field) and _PLAIN_NAME.fullmatch(field.name) for field in fields):
        yield F.to_json(_struct(fields), {"ignoreNullFields": "false"})
        return
    for number, field in enumerate(fields):
        yield F.lit(f'{"," if number else "{"}"{field.name}":')
        yield F.coalesce(_column(field).cast("string"), F.lit("null"))
    yield F.lit("}")


def _csv_pieces(fields: Sequence[StructField]) -> Iterator[Column]:
    """What a line consists of, commas included. An empty field is null, two quotes are the empty string; in a line of
    one field they are either, for one that is empty would be taken for no row at all."""
    if len(fields) == 1:
        yield _unless_null(fields[0], F.lit('""'))
        return
    runs = [(plain, list(run)) for plain, run in groupby(fields, _is_plain)]
    if sum(not plain for plain, _ in runs) > 1:
        # Each call of `to_csv` costs more than what it is spared.
        yield F.to_csv(_struct(fields), _CSV_AS_RFC_4180)
        return
    for number, (plain, run) in enumerate(runs):
        if number:
            yield F.lit(",")
        if len(run) > 1 and not plain:
            yield F.to_csv(_struct(run), _CSV_AS_RFC_4180)
            continue
        for place, field in enumerate(run):
            if place:
                yield F.lit(",")
            yield _unless_null(field, F.lit(""))


def _unless_null(field: StructField, otherwise: Column) -> Column:
    """One field; Spark's `to_csv` gives null for a row whose only field is null, and says that it never does."""
    if _is_plain(field):
        return F.coalesce(_column(field).cast("string"), otherwise)
    return F.when(_column(field).isNull(), otherwise).otherwise(F.to_csv(_struct([field]), _CSV_AS_RFC_4180))


def _is_plain(field: StructField) -> bool:
    return isinstance(field.dataType, _NEEDS_NO_QUOTES)


def _struct(fields: Sequence[StructField]) -> Column:
    return F.struct(*(_column(field) for field in fields))


def _column(field: StructField) -> Column:
    return F.col(f"`{field.name}`")
