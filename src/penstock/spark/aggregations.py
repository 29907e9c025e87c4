"""What is computed of many tuples, as Spark's own aggregate functions."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.spark.numbering import SEQUENCE
from penstock.topology.aggregates import Aggregate


def computed(
    aggregate: Aggregate, columns: list[str], over: Callable[[Column], Column] = lambda column: column
) -> Column:
    """The column that an aggregate makes of tuples, whose columns are `columns`; `over` says of which ones."""
    value = F.lit(1) if aggregate.value is None else F.expr(aggregate.value)
    place = F.col(SEQUENCE)
    match aggregate.function:
        case "count":
            return over(F.count(value))
        case "sum":
            return over(F.sum(value))
        case "avg":
            return over(F.avg(value))
        case "min":
            return over(F.min(value))
        case "max":
            return over(F.max(value))
        case "stddev":
            return over(F.stddev(value))
        case "percentile":
            return over(F.percentile(value, F.lit(aggregate.number)))
        case "approx_distinct":
            return over(F.approx_count_distinct(value))
        # One source tuple may have given several tuples, which have one place: then the value decides.
        case "first":
            return over(F.min_by(value, F.struct(place, value)))
        case "last":
            return over(F.max_by(value, F.struct(place, value)))
        case "collect":
            pair = F.when(value.isNotNull(), F.struct(place.alias("place"), value.alias("value")))
            pairs = over(F.collect_list(pair))
            return F.transform(F.array_sort(pairs), lambda pair: pair["value"])
        case "top":
            whole = F.struct(*(F.col(f"`{name}`") for name in columns))
            order = F.when(value.isNotNull(), F.struct(value, -place))
            return F.coalesce(over(F.max_by(whole, order, round(aggregate.number))), F.array())
        case unknown:
            raise TypeError(f"no lowering for the function '{unknown}'")
