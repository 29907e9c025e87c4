"""A user's own function of a window: called once for every window, with all of its tuples in the order read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.arrow_stage import map_batches
from penstock.spark.carried_time import CarriedTime
from penstock.spark.custom import INSTANCE, CustomStage
from penstock.spark.numbering import CARRIED, MARK, SEQUENCE, TIME
from penstock.spark.tuples import tuple_class
from penstock.topology.aggregates import Aggregate, parse_aggregate
from penstock.topology.context import Context
from penstock.topology.window import Window
from penstock.validation.window_schemas import bounds_of

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering

_TUPLES = "__tuples"
_GIVEN = ("key", "begin", "end", "tuples")
"""The columns of what the stage is given."""


@dataclass(frozen=True)
class WholeWindow:
    """What a function is told of the window whose tuples it is given."""

    key: Any
    """The value of the column `by`; a tuple where there are several, None where there is none."""
    start: datetime | None = None
    """Where a window of time begins."""
    end: datetime | None = None
    """Where it ends; this moment does not belong to it any more."""
    first: int | None = None
    """Of a window of so many tuples: the number of the first among those of its key, from 1."""
    last: int | None = None


def aggregates_of(operator: Window, columns: list[str]) -> list[Aggregate]:
    """What Spark computes of a window; for a function, all of the tuples, whose columns are `columns`."""
    if operator.code is None:
        return [parse_aggregate(text) for text in operator.compute]
    return [Aggregate("collect", (f"struct({', '.join(f'`{name}`' for name in columns)})",), _TUPLES)]


def applied(operator: Window, rows: DataFrame, lowering: Lowering) -> DataFrame:
    """What comes of the rows of windows: themselves, or what the function gives for each of them."""
    function = operator.function
    if function is None:
        return rows
    key = F.struct(*(F.col(f"`{name}`") for name in operator.keys)) if operator.keys else F.lit(None).cast("string")
    hidden = [name for name in (SEQUENCE, *CARRIED) if name in rows.columns]
    begin, end = bounds_of(operator)
    values = (key, F.col(begin), F.col(end), F.col(_TUPLES))
    given = rows.select(*(value.alias(name) for value, name in zip(values, _GIVEN, strict=True)), *hidden)
    settings = lowering.settings
    stage = WindowFunctionStage(
        settings.run, function, settings.folder, _GIVEN, settings.state, None, settings.topology,
        counts_tuples=operator.counts_tuples,
    )
    carried = tuple(name for name in hidden if name in CARRIED)
    types = {SEQUENCE: "bigint", TIME: "timestamp", MARK: "bigint"}
    schema = ", ".join([function.emits[0][1].ddl, *(f"{name} {types[name]}" for name in hidden)])
    placed = given.withColumn(INSTANCE, F.spark_partition_id())
    lowering.narrow = False
    return map_batches(placed, CarriedTime(stage, carried) if carried else stage, schema)


@dataclass(frozen=True)
class WindowFunctionStage(CustomStage):
    """Runs the function as custom code is run, on rows that are whole windows."""

    counts_tuples: bool = False

    def code(self, context: Context) -> Any:
        return given_windows(super().code(context), self.counts_tuples)


def given_windows(function: Callable[..., Any], counts_tuples: bool = False) -> Callable[..., Any]:
    """The function of a window and its tuples, as a function of a row that holds both."""

    def call(row: Any, **arguments: Any) -> Any:
        bounds = {"first": row.begin, "last": row.end} if counts_tuples else {"start": row.begin, "end": row.end}
        tuples = [tuple_class(tuple(each))(each.values()) for each in row.tuples]
        return function(WholeWindow(_shown(row.key), **bounds), tuples, **arguments)

    def call_with_context(row: Any, context: Context, **arguments: Any) -> Any:
        return call(row, context=context, **arguments)

    return call_with_context if "context" in inspect.signature(function).parameters else call


def _shown(key: Mapping[str, Any] | None) -> Any:
    values = () if key is None else tuple(key.values())
    return values[0] if len(values) == 1 else values or None
