"""Windows of so many tuples. A worker finds out which tuples make a window; Spark computes of them natively."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Partition
from pyspark.sql import functions as F

from penstock.plan.pruning import asked_by_window
from penstock.spark.aggregations import computed
from penstock.spark.arrow_stage import is_narrow
from penstock.spark.counted_tuples import FIRST, PLACE, CountingStage
from penstock.spark.keyed_stage import key_columns, transformed_with_state
from penstock.spark.numbering import CARRIED, HIDDEN, MARK, SEQUENCE, TIME
from penstock.spark.window_function import aggregates_of, applied
from penstock.topology.window import WINDOW_FIRST, WINDOW_LAST, Window

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering

_EVERYTHING = "__everything"
_TYPES = {TIME: "timestamp", MARK: "bigint"}


def lower_count_window(operator: Window, frame: DataFrame, lowering: Lowering) -> DataFrame:
    """A row for every full window: the keys, the numbers of its first and last tuple, and what is computed.

    All tuples of a window leave the worker in the epoch in which it becomes full: they are put together within that
    epoch, by a window function and not by a grouping, which would remember them.
    """
    wanted = asked_by_window(operator)
    columns = [name for name in frame.columns if name not in HIDDEN and (wanted is None or name.lower() in wanted)]
    frame = frame.select(*(F.col(f"`{name}`") for name in columns), *(name for name in HIDDEN if name in frame.columns))
    keys = operator.keys or (_EVERYTHING,)
    # A key that is a literal would be optimised away.
    keyed = frame if operator.keys else frame.withColumn(_EVERYTHING, F.col(SEQUENCE) * 0)
    carried = tuple(name for name in CARRIED if name in frame.columns)
    span = operator.span
    place = f" ({operator.where})" if operator.where.line else ""
    stage = CountingStage(
        f"operator '{operator.name}'{place}",
        span.length,
        span.step,
        key_columns(operator, keys, keyed),
        carried,
        lowering.settings.state,
    )
    # The worker has the columns of the epoch at the end.
    ordered = keyed.select(*(F.col(f"`{name}`") for name in keyed.columns if name not in carried), *carried)
    kept = [field for field in ordered.schema.fields if field.name not in carried]
    added = [f"{FIRST} bigint", f"{PLACE} bigint", *(f"{name} {_TYPES[name]}" for name in carried)]
    schema = ", ".join([*(f"`{field.name}` {field.dataType.simpleString()}" for field in kept), *added])
    lowering.narrow &= is_narrow(ordered.schema)
    tuples = transformed_with_state(ordered, stage, stage.key, schema, stage.state)
    whole = Partition.partitionBy(*(F.col(f"`{key}`") for key in keys), FIRST)
    aggregates = aggregates_of(operator, columns)

    def over(column: Column) -> Column:
        return column.over(whole)

    rows = tuples.select(
        *(F.col(f"`{key}`") for key in operator.keys),
        F.col(FIRST).alias(WINDOW_FIRST),
        (F.col(FIRST) + (span.length - 1)).alias(WINDOW_LAST),
        *(computed(each, columns, over).alias(each.name) for each in aggregates),
        over(F.max(SEQUENCE)).alias(SEQUENCE),
        *carried,
        PLACE,
    )
    return applied(operator, rows.where(f"{PLACE} = 0").drop(PLACE), lowering)
