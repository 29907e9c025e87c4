"""Run a Python function over a DataFrame's Arrow batches, without pandas.

`DataFrame.mapInArrow` asks for pandas although neither it nor the workers use it: importing pandas
costs every worker half a second. This makes the same plan node directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DatetimeType, NumericType, StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from penstock.spark.worker_process import settle_in

BYTES_IN_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS_IN_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_NO_LIMIT = 2**31 - 1
_LIMIT = 64 << 20
_MOST_COLUMNS = 32
"""So many numbers a row, also written out as text, are some 50 MB in the largest batch."""

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def is_narrow(schema: StructType) -> bool:
    """Whether its rows are short, whatever is in them: a few numbers."""
    short = (NumericType, BooleanType, DatetimeType)
    return len(schema) <= _MOST_COLUMNS and all(isinstance(field.dataType, short) for field in schema)


def limit_batches(spark: SparkSession, narrow: bool) -> None:
    """Say how large the batches may become that queries of this session give to Python.

    Spark adds up the size of a batch after each of its rows. Where all rows are narrow, their number is limit enough: a
    job with a Python function for each tuple took 5.5 and 5.9 seconds instead of 7.1 and 9.0.
    """
    spark.conf.set(BYTES_IN_BATCH, str(_NO_LIMIT if narrow else _LIMIT))


def map_batches(frame: DataFrame, stage: Stage, schema: str) -> DataFrame:
    """The batches that `stage` yields, one call of it for every task; `schema` describes them."""

    def run_stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_in()
        yield from stage(batches)

    function = UserDefinedFunction(
        run_stage, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = function(*(frame[name] for name in frame.columns))
    mapped = frame._jdf.mapInArrow(column._jc, False, None)
    return DataFrame(mapped, frame.sparkSession)
