"""A digest of what a stream holds in an epoch, whatever the order: replicas compare theirs.

Every row is hashed, and the hashes are added up. Fractions that are sums may differ in the last digits: they are left
out of the hash and added up themselves, each sum weighed with the hash of its row, and compared to a millionth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StringType, StructType

from penstock.spark.numbering import HIDDEN

DIGEST = "digest"

_HALF = 0xFFFFFFFF
"""Sums of half the hash fit into a long for as many rows as an epoch may have."""
_WEIGHTS = 0xFFFF
_NUMBER = r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?"


def with_digest(frame: DataFrame, step: str, rounded: Collection[str]) -> DataFrame:
    """The same frame, observed natively; the fractions in the columns `rounded` are compared with tolerance."""
    first, *others = digest_columns(frame, rounded)
    return frame.observe(f"{step}|{DIGEST}", first, *others)


def digest_columns(frame: DataFrame, rounded: Collection[str]) -> list[Column]:
    """What is computed of all rows: how many there are, the sum of their hashes, and two sums of each in `rounded`."""
    fields = [field for field in frame.schema.fields if field.name not in HIDDEN]
    parts = [_hashed(F.col(f"`{field.name}`"), field.dataType, field.name in rounded) for field in fields]
    hashed: Column = F.xxhash64(*parts) if parts else F.lit(0).cast("bigint")
    # A value that has moved to another row is another weight.
    weight = hashed.bitwiseAND(F.lit(_WEIGHTS)) / F.lit(float(_WEIGHTS)) + F.lit(0.5)
    columns = [F.count(F.lit(1)).alias("rows"), _sum(hashed.bitwiseAND(F.lit(_HALF)), 0).alias("sum")]
    for number, field in enumerate(field for field in fields if field.name in rounded):
        value = F.col(f"`{field.name}`")
        columns.append(_as_text(_sum(_added(value, field.dataType) * weight, 0.0)).alias(f"weighed {number}"))
        columns.append(_as_text(_sum(_added(value, field.dataType, F.abs), 0.0)).alias(f"size {number}"))
    return columns


def written_digest(row: Mapping[str, Any]) -> str:
    """What was computed as one word for all that must be equal, and one for each sum; see `replication.divergence`."""
    sums = range((len(row) - 2) // 2)
    return " ".join([f"{row['rows']}:{row['sum']:x}", *(f"{row[f'weighed {n}']}/{row[f'size {n}']}" for n in sums)])


def can_be_rounded(kind: DataType) -> bool:
    """Whether a value may tell the last digits of a sum: a fraction, or a text that one was written into."""
    return has_fractions(kind) or isinstance(kind, StringType)


def has_fractions(kind: DataType) -> bool:
    return _holds(kind, DoubleType | FloatType)


def _holds(kind: DataType, what: Any) -> bool:
    """Whether a value of this type is such a one, or has one in it."""
    match kind:
        case ArrayType(elementType=element):
            return _holds(element, what)
        case MapType(keyType=key, valueType=value):
            return isinstance(kind, what) or _holds(key, what) or _holds(value, what)
        case StructType(fields=fields):
            return any(_holds(field.dataType, what) for field in fields)
        case _:
            return isinstance(kind, what)


def _hashed(value: Column, kind: DataType, rounded: bool) -> Column:
    if rounded and isinstance(kind, StringType):
        # Nobody knows which of its numbers are those of a sum: the rest of it is compared.
        return F.regexp_replace(value, _NUMBER, "#")
    return _exact(value, kind, rounded)


def _exact(value: Column, kind: DataType, rounded: bool) -> Column:
    """What of a value is hashed. Maps cannot be: their entries are, in any order."""
    if not (_holds(kind, MapType) or (rounded and has_fractions(kind))):
        return value
    match kind:
        case ArrayType(elementType=element):
            return F.transform(value, lambda each: _exact(each, element, rounded))
        case MapType(valueType=kept):
            return F.aggregate(
                F.map_entries(value),
                F.size(value).cast("bigint"),
                lambda total, entry: total + F.xxhash64(
                    entry["key"], _exact(entry["value"], kept, rounded)
                ).bitwiseAND(F.lit(_HALF)),
            )
        case StructType(fields=fields):
            return F.struct(*(_exact(value[field.name], field.dataType, rounded) for field in fields))
        case _:
            return F.when(value.isNotNull(), F.isnan(value))


def _added(value: Column, kind: DataType, each: Any = lambda fraction: fraction) -> Column:
    """The sum of the fractions in a value; those that are no number are told by the hash."""
    match kind:
        case DoubleType() | FloatType():
            fraction = value.cast("double")
            return F.when(value.isNull() | F.isnan(value), F.lit(0.0)).otherwise(each(fraction))
        case ArrayType(elementType=element) if has_fractions(element):
            total = F.aggregate(value, F.lit(0.0), lambda total, item: total + _added(item, element, each))
            return F.coalesce(total, F.lit(0.0))
        case MapType(valueType=kept) if has_fractions(kept):
            return _added(F.map_values(value), ArrayType(kept), each)
        case StructType(fields=fields):
            return sum((_added(value[field.name], field.dataType, each) for field in fields), F.lit(0.0))
        case _:
            return F.lit(0.0)


def _sum(value: Column, nothing: float) -> Column:
    return F.coalesce(F.sum(value), F.lit(nothing))


def _as_text(value: Column) -> Column:
    """JSON, in which Spark tells what it has observed, has no infinity."""
    return value.cast("string")
