"""Run a Python function over a DataFrame's Arrow batches, without pandas.

`DataFrame.mapInArrow` asks for pandas although neither it nor the workers use it: importing pandas
costs every worker half a second. This makes the same plan node directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from penstock.spark.worker_process import settle_in

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


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
