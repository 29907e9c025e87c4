"""Joins of two streams as Spark's own: each side waits in the state until its time is over.

Spark keeps a tuple of one side as long as a tuple of the other may come that is near enough in time, judged by the
watermark of both. It then forgets it, or, in a left join, emits it alone if it never found a partner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.clock import ClockSettings
from penstock.spark.event_time import EVENT, marked, moving_time, watched
from penstock.spark.numbering import HIDDEN, MARK, TIME
from penstock.topology.join import Join, joined_columns
from penstock.topology.lineage import lineage_of_streams

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering


def lower_join(operator: Join, frames: dict[str, DataFrame], lowering: Lowering) -> DataFrame:
    """The pairs of a join, and of a left join the lonely ones; `frames` are its two ports."""
    (first, left), (second, right) = frames.items()
    sides = {port: _with_event_time(operator, port, frame, lowering).alias(port) for port, frame in frames.items()}
    kind = "left_outer" if operator.keeps_left else "inner"
    pairs = sides[first].join(sides[second], F.expr(_condition(operator, first, second)), kind)
    columns = joined_columns({port: _visible(frame) for port, frame in ((first, left), (second, right))})
    hidden = [name for name in HIDDEN if name in left.columns and name != MARK]
    return pairs.select(
        *(F.col(f"`{each.port}`.`{each.column}`").alias(each.name) for each in columns),
        # Of a pair, it is the later tuple that the present epoch has brought.
        *(F.greatest(F.col(f"`{first}`.{name}"), F.col(f"`{second}`.{name}")).alias(name) for name in hidden),
        # What a join lets through is never late, and the state need not keep what nobody asks for.
        *([F.lit(None).cast("bigint").alias(MARK)] if MARK in left.columns else []),
    )


def _condition(operator: Join, first: str, second: str) -> str:
    near = round(operator.within * 1000)
    one, other = f"`{first}`.{EVENT}", f"`{second}`.{EVENT}"
    return (
        f"({operator.condition})\n"  # after a line break, for it may end in a comment
        f"AND {one} >= {other} - INTERVAL {near} MILLISECONDS AND {one} <= {other} + INTERVAL {near} MILLISECONDS "
        # A tuple without a time finds nobody. Said so, it does not wait to be found.
        f"AND {one} IS NOT NULL AND {other} IS NOT NULL"
    )


def _with_event_time(operator: Join, port: str, frame: DataFrame, lowering: Lowering) -> DataFrame:
    column = operator.time_column(port)
    event = F.col(TIME) if column is None else F.col(f"`{column}`").cast("timestamp")
    lineage = lineage_of_streams(lowering.plan.topology, operator.by_port()[port])
    if lineage.watched:
        # These tuples have passed a watermark, and Spark knows how far it is behind that operator.
        return frame.select("*", marked(event, operator.lateness))
    clock = ClockSettings(tuple(sorted(lineage.sources)), by_epoch_time=column is None)
    return watched(frame, event, moving_time(column), operator.lateness, clock, lowering, shielded=True)


def _visible(frame: DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in HIDDEN]
