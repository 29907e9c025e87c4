"""Tuples that Spark makes by itself, of the numbers of their rows: Python only says which numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.connectors.base import ROW, Slice
from penstock.spark.numbering import CARRIED, SEQUENCE, Picks

_FIRST, _LAST, _AHEAD = "__first", "__last", "__ahead"
NUMBERS = f"{_FIRST} bigint, {_LAST} bigint, {_AHEAD} bigint"
"""A row of these stands for many tuples: the numbers of the first and the last, and how far ahead sequences are."""

_ROWS_AT_ONCE = 65_536
"""Spark makes an array of the numbers before it takes it apart."""


def numbers_of_picks(part: Slice, picks: Picks) -> pa.RecordBatch:
    """Those rows of a slice that are replayed, each with its own sequence."""
    first = part.detail["begin"] - part.first
    rows = np.array([first + at for at in sorted(picks)], dtype=np.int64)
    ahead = np.array([picks[at] for at in sorted(picks)], dtype=np.int64) - rows
    return pa.RecordBatch.from_arrays([pa.array(each) for each in (rows, rows, ahead)], [_FIRST, _LAST, _AHEAD])


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
    # Outer, though no array is empty: columns that are read may be null as far as Spark knows, and so must these. A
    # stored key that may not would be refused when the source has to be read one day.
    rows = numbers.select(F.explode_outer(F.sequence(_FIRST, _LAST)).alias(ROW), _AHEAD, *carried)
    made = (f"{of_row} as `{name}`" for name, of_row in columns.items())
    return rows.selectExpr(*made, f"{ROW} + {_AHEAD} as {SEQUENCE}", *carried)
