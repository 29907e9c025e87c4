"""Windows as native Spark aggregations. Spark closes them by its watermark, see `event_time`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.spark.aggregations import computed
from penstock.spark.clock import ClockSettings
from penstock.spark.early_results import held_back
from penstock.spark.event_time import EVENT, LONG_AGO, marked, moving_time, watched
from penstock.spark.late_tuples import without_late
from penstock.spark.numbering import HIDDEN, MARK, SEQUENCE, TIME
from penstock.spark.window_function import aggregates_of, applied
from penstock.topology.lineage import lineage_of
from penstock.topology.window import WINDOW_END, WINDOW_START, Window, WindowKind

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering

_WINDOW = "__window"
_EVERYTHING = "__everything"


def lower_window(operator: Window, frame: DataFrame, lowering: Lowering) -> DataFrame:
    """A row for every key and window: the keys, where the window begins and ends, and what is computed."""
    grouped = _with_event_time(operator, frame, lowering).groupBy(*_grouping(operator))
    columns = [name for name in frame.columns if name not in HIDDEN]
    aggregates = aggregates_of(operator, columns)
    summed = grouped.agg(
        *(computed(each, columns).alias(each.name) for each in aggregates), F.max(SEQUENCE).alias(SEQUENCE)
    )
    # Spark would leave out of the state what nobody reads: a change behind the window would make the state unfit. A
    # condition that is always true and names all columns keeps them, and costs nothing, for it is decided at once.
    kept = summed.where((F.spark_partition_id() >= 0) | F.to_json(F.struct("*")).isNotNull())
    rows = kept.select(
        *(F.col(f"`{key}`") for key in operator.keys),
        F.col(f"{_WINDOW}.start").alias(WINDOW_START),
        F.col(f"{_WINDOW}.end").alias(WINDOW_END),
        *(F.col(f"`{each.name}`") for each in aggregates),
        SEQUENCE,
    )
    # A window's row belongs to many epochs: it has none's time.
    timeless = held_back(operator, rows, lowering).select(
        "*",
        *([F.lit(None).cast("timestamp").alias(TIME)] if TIME in frame.columns else []),
        *([F.lit(None).cast("bigint").alias(MARK)] if MARK in frame.columns else []),
    )
    return applied(operator, timeless, lowering)


def _with_event_time(operator: Window, frame: DataFrame, lowering: Lowering) -> DataFrame:
    if not operator.forgets:
        return frame.withColumn(EVENT, _event_time(operator))
    event = _event_time(operator)
    lineage = lineage_of(lowering.plan.topology, operator)
    if lineage.watched:
        # These tuples have passed a watermark, and Spark knows how far it is behind that window.
        return frame.select("*", marked(event, operator.lateness))
    clock = ClockSettings(tuple(sorted(lineage.sources)), by_epoch_time=operator.on is None)
    if operator.on is not None:
        frame = without_late(operator, frame, event, lowering)
    return watched(frame, event, moving_time(operator.on), operator.lateness, clock, lowering)


def _event_time(operator: Window) -> Column:
    if operator.on is None:
        return F.col(TIME)
    time = F.col(f"`{operator.on}`").cast("timestamp")
    if operator.on.lower() == WINDOW_END:
        # The end itself belongs to the next window.
        time = time - F.expr("interval 1 microsecond")
    return F.coalesce(time, F.lit(LONG_AGO).cast("timestamp"))


def _grouping(operator: Window) -> list[Column]:
    span = operator.span
    keys = [F.col(f"`{key}`") for key in operator.keys]
    if span.kind is WindowKind.SESSION:
        window = F.session_window(EVENT, f"{span.length} milliseconds")
        # Sessions need a key, and one that is a literal is optimised away.
        keys = keys or [(F.col(SEQUENCE) * 0).alias(_EVERYTHING)]
    else:
        window = F.window(EVENT, f"{span.length} milliseconds", f"{span.step} milliseconds")
    return [*keys, window.alias(_WINDOW)]
