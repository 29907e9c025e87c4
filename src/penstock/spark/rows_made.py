"""Tuples that Spark makes by itself, of the numbers of their rows: Python only says which numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.connectors.base import ROW, Slice
from penstock.spark.numbering import CARRIED, SEQUENCE

_FIRST, _LAST, _AHEAD = "__first", "__last", "__ahead"
NUMBERS = f"{_FIRST} bigint, {_LAST} bigint, {_AHEAD} bigint"
"""A row of these stands for many tuples: the numbers of the first and the last, and how far ahead sequences are."""

_ROWS_AT_ONCE = 65_536
"""Spark makes an array of the numbers before it takes it apart."""


def numbers_of_rows(part: Slice, sequence: int) -> pa.RecordBatch:
    """The rows of a slice, some at once; `sequence` is that of the first tuple of the epoch."""
    begin, end = part.detail["begin"], part.detail["end"]
    first = np.arange(begin, end, _ROWS_AT_ONCE, dtype=np.int64)
    last = np.minimum(first + _ROWS_AT_ONCE, end) - 1
    ahead = np.full(len(first), sequence + part.first - begin, dtype=np.int64)
    return pa.RecordBatch.from_arrays([pa.array(each) for each in (first, last, ahead)], [_FIRST, _LAST, _AHEAD])


def tuples_of(numbers: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The tuples that rows of `NUMBERS` stand for; `columns` says in SQL how each is made of `ROW`."""
    carried = [name for name in CARRIED if name in numbers.columns]
    rows = numbers.select(F.explode(F.sequence(_FIRST, _LAST)).alias(ROW), _AHEAD, *carried)
    made = (f"{of_row} as `{name}`" for name, of_row in columns.items())
    return rows.selectExpr(*made, f"{ROW} + {_AHEAD} as {SEQUENCE}", *carried)
