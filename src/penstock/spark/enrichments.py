"""Enrichments as Spark's own broadcast joins with a table that is read in every epoch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.connectors.lookup_tables import lookup_table
from penstock.spark.numbering import HIDDEN
from penstock.spark.table_source import TABLE_FORMAT
from penstock.topology.enrichment import Enrich

if TYPE_CHECKING:
    from penstock.spark.lowering import Lowering

_TABLE = "__table_"


def lower_enrich(operator: Enrich, frame: DataFrame, lowering: Lowering) -> DataFrame:
    """Every tuple with each row of the table that has the same key."""
    settings = lowering.settings
    schema = lookup_table(operator, settings.topology, Path(settings.folder)).schema()
    reader = lowering.spark.read.format(TABLE_FORMAT).schema(schema.ddl)
    table = reader.option("state", settings.state).option("operator", operator.name).load()
    # Names of its own: Spark would not know whose key is meant.
    renamed = table.toDF(*(_TABLE + name for name in schema.names))
    keys = {key.lower() for key in operator.keys}
    ours = {name.lower(): name for name in frame.columns}
    equal = [
        F.col(f"`{ours[name.lower()]}`") == F.col(f"`{_TABLE}{name}`") for name in schema.names if name.lower() in keys
    ]
    kind = "left_outer" if operator.keeps_left else "inner"
    joined = frame.join(F.broadcast(renamed), equal, kind)
    return joined.select(
        *(F.col(f"`{name}`") for name in frame.columns if name not in HIDDEN),
        *(F.col(f"`{_TABLE}{name}`").alias(name) for name in operator.added(schema.names)),
        *(name for name in HIDDEN if name in frame.columns),
    )
