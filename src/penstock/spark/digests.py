"""A digest of what a stream holds in an epoch, whatever the order: replicas compare theirs."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType

from penstock.spark.numbering import HIDDEN

OPERATOR_DIGEST = "digest"
SINK_DIGEST = "sink digest"

_HALF = 0xFFFFFFFF
"""Sums of half the hash fit into a long for as many rows as an epoch may have."""


def with_digest(frame: DataFrame, node: str, what: str) -> DataFrame:
    """The same frame, observed natively: how many rows, and the sum of their hashes."""
    columns = [
        F.col(f"`{field.name}`")
        for field in frame.schema.fields
        if field.name not in HIDDEN and _is_comparable(field.dataType)
    ]
    hashed: Column = F.xxhash64(*columns) if columns else F.lit(0).cast("bigint")
    total = F.coalesce(F.sum(hashed.bitwiseAND(F.lit(_HALF))), F.lit(0))
    return frame.observe(f"{node}|{what}", F.count(F.lit(1)).alias("rows"), total.alias("sum"))


def _is_comparable(kind: DataType) -> bool:
    """Fractions may differ in the last digit, for sums are not added in a fixed order; maps cannot be hashed."""
    if isinstance(kind, ArrayType):
        return _is_comparable(kind.elementType)
    if isinstance(kind, StructType):
        return all(_is_comparable(field.dataType) for field in kind.fields)
    return not isinstance(kind, DoubleType | FloatType | MapType)
