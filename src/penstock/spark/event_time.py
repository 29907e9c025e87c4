"""The time by which operators put tuples together, and Spark's watermark that follows it.

Spark forgets what it keeps by its watermark: the latest time seen, less the lateness, as the epochs before have left
it. Two columns of ours stand behind that. `EVENT` is the time of a tuple. `_MOVES` is what the watermark sees of it,
and that may be less: a time that lies ahead of its epoch's moves nothing, or one tuple from a clock that is wrong
would bring everything to an end at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.spark.clock import ClockSettings, clock_stream
from penstock.spark.numbering import SEQUENCE, TIME

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering

EVENT = "__event"
_MOVES = "__moves"
_DELAY = "spark.watermarkDelayMs"
"""The mark by which Spark knows the column that the watermark speaks of."""
LONG_AGO = "0001-01-01 00:00:00"
"""The time of a tuple that has none: always too late."""


def marked(event: Column, lateness: float) -> Column:
    """A time as the column that the watermark speaks of."""
    return event.alias(EVENT, metadata={_DELAY: round(lateness * 1000)})


def moving_time(column: str | None) -> Column:
    """What the watermark sees of the times in a column; without one, of the times of epochs."""
    if column is None:
        return F.col(TIME)
    time = F.col(f"`{column}`").cast("timestamp")
    return F.when(time <= F.col(TIME), time).otherwise(F.lit(LONG_AGO).cast("timestamp"))


def watched(
    frame: DataFrame,
    event: Column,
    moves: Column,
    lateness: float,
    clock: ClockSettings,
    lowering: Lowering,
    shielded: bool = False,
) -> DataFrame:
    """The frame with the column `EVENT`, and a watermark that follows `moves` and the clock.

    With `shielded`, no condition on any column is pushed down to where the clock's rows still are. Spark derives such
    conditions from a join, and the clock's rows, which have no values, would be gone before the watermark sees them.
    """
    told = clock_stream(lowering.spark, lowering.settings, clock).toDF(_MOVES)
    empty = (F.lit(None).cast(field.dataType).alias(field.name) for field in frame.schema)
    both = frame.withColumn(_MOVES, moves).union(told.select(*empty, _MOVES))
    moving = both.withWatermark(_MOVES, f"{round(lateness * 1000)} milliseconds")
    # The clock's rows have no sequence. Spark would push this condition below the watermark, and every other that comes
    # after; then the watermark would not see those rows. What is not deterministic stays, and lets nothing through.
    tuples = moving.where(F.col(SEQUENCE).isNotNull() | (F.spark_partition_id() < 0))
    if not shielded:
        return tuples.drop(_MOVES).select("*", marked(event, lateness))
    seen = F.col(_MOVES).isNotNull()  # always; but only above the watch can it be known
    return tuples.select(
        *(F.when(seen, F.col(f"`{name}`")).alias(name) for name in frame.columns),
        marked(F.when(seen, event), lateness),
    )
