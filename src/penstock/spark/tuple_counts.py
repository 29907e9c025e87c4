"""Count the tuples that leave an operator, while they pass: Spark observes them, and no job is needed for it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.plan.counting import ports_to_count
from penstock.spark.emitted import PORT
from penstock.topology.model import Operator

TUPLE_COUNT = "tuples"
"""What the number of an operator's tuples is called among the observed metrics: `<operator>|tuples`."""
PORT_COUNTS = "ports"
"""And what the numbers of its ports are called, where it has several: `<operator>|ports`."""


def with_count(frame: DataFrame, operator: Operator, self_acking: bool) -> DataFrame:
    """The same frame, its tuples counted; where there are several ports, for each."""
    ports = ports_to_count(operator)
    if ports:
        counts = [F.count_if(F.col(PORT) == number).alias(port) for number, port in enumerate(ports)]
        return frame.observe(f"{operator.name}|{PORT_COUNTS}", *counts)
    # What a bolt has not acked leaves it on a hidden port after its own, and is none of its tuples.
    number = F.count_if(F.col(PORT) == 0) if self_acking else F.count(F.lit(1))
    return frame.observe(f"{operator.name}|{TUPLE_COUNT}", number.alias("tuples"))
