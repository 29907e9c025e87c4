"""What Spark keeps for each kind of operator, as columns that a person can read: the keys, then what is remembered.

Spark's own names for the state of its operators: `stateStoreSave` and `sessionWindowStateStoreSave` for aggregations,
`dedupe`, `symmetricHashJoin`, `transformWithState…`. A kind that is not known is shown as Spark has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.spark.arrow_stage import map_batches
from penstock.spark.counted_tuples import tuples_read
from penstock.spark.state_access import STATE
from penstock.spark.stored_state import read_state
from penstock.topology.model import Count, Operator, Uniq
from penstock.topology.state_encoding import decode
from penstock.topology.window import Window

INSTANCE = "instance"
REMEMBERED = "remembered"
_JOIN_SIDES = ("left", "right")


def readable_state(
    spark: SparkSession, checkpoint: Path, number: int, kind: str, operator: Operator
) -> tuple[list[str], DataFrame]:
    """The names of the key's columns, and a row for every key: its columns, what is remembered, and its instance."""
    if kind == "symmetricHashJoin":
        # By store: Spark's reader of a whole side lets go of its stores twice, and fails.
        names = [f"{side}-keyWithIndexToValue" for side in _JOIN_SIDES]
        stores = [read_state(spark, checkpoint, number, storeName=name) for name in names]
        sides = [_plain(rows, F.lit(side)) for rows, side in zip(stores, _JOIN_SIDES, strict=True)]
        return sides[0][0], reduce(DataFrame.unionByName, (rows for _, rows in sides))
    if kind.startswith("transformWithState"):
        show = counted_as_json if isinstance(operator, Window) else as_json
        return _decoded(read_state(spark, checkpoint, number, stateVarName=STATE), show)
    rows = read_state(spark, checkpoint, number)
    match operator:
        case Uniq(keys=keys):
            return list(keys), rows.select(*_named(rows, keys), _instance())
        case Count(keys=keys):
            first = _fields(rows, "value")[0].name
            count = F.col("value").getField(first).alias("count")
            return list(keys), rows.select(*_named(rows, keys), count, _instance())
    return _plain(rows)


def _plain(rows: DataFrame, side: Column | None = None) -> tuple[list[str], DataFrame]:
    keys = _keys(rows)
    sides = [] if side is None else [side.alias("side")]
    return list(keys), rows.select(*keys.values(), *sides, F.to_json("value").alias(REMEMBERED), _instance())


def _decoded(rows: DataFrame, show: Callable[[bytes], str]) -> tuple[list[str], DataFrame]:
    keys = _keys(rows)
    wanted = rows.select(*keys.values(), F.col("value.bytes").alias(REMEMBERED), _instance())
    ddl = ", ".join(f"`{item.name}` {'string' if item.name == REMEMBERED else item.dataType.simpleString()}"
                    for item in wanted.schema)
    return list(keys), map_batches(wanted, Decoding(show), ddl)


@dataclass(frozen=True)
class Decoding:
    """What our own code remembers of a key, as JSON."""

    show: Callable[[bytes], str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            place = batch.schema.get_field_index(REMEMBERED)
            texts = [self.show(value) for value in batch.column(place).to_pylist()]
            columns = [pa.array(texts, pa.string()) if index == place else column
                       for index, column in enumerate(batch.columns)]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def as_json(encoded: bytes) -> str:
    """What custom code remembers of a key; what JSON has no form for, as Python writes it."""
    remembered = decode(encoded)
    items = {name: item.content for name, item in remembered.items.items()}
    timers = {"timers": remembered.timers} if remembered.timers else {}
    return json.dumps({**items, **timers}, ensure_ascii=False, default=repr)


def counted_as_json(encoded: bytes) -> str:
    """What a window that counts tuples remembers of a key, but for the tuples themselves."""
    return json.dumps({"tuples": tuples_read(encoded)})


def _named(rows: DataFrame, names: Sequence[str]) -> list[Column]:
    """The columns of the key under the operator's own names; what stands in for no key at all is left out."""
    fields = [item.name for item in _fields(rows, "key")]
    return [F.col("key").getField(field).alias(name) for field, name in zip(fields, names, strict=False)]


def _keys(rows: DataFrame) -> dict[str, Column]:
    """The columns of the key; what stands in for no key at all is left out."""
    found: dict[str, Column] = {}
    for item in _fields(rows, "key"):
        column = F.col("key").getField(item.name)
        if isinstance(item.dataType, StructType) and item.name.startswith("__"):
            # A window, which has a beginning and an end.
            found |= {f"window_{inner.name}": column.getField(inner.name).alias(f"window_{inner.name}")
                      for inner in item.dataType}
        elif not item.name.startswith("__"):
            found[item.name] = column.alias(item.name)
    return found


def _fields(rows: DataFrame, column: str) -> list[StructField]:
    kind = rows.schema[column].dataType
    return list(kind) if isinstance(kind, StructType) else []


def _instance() -> Column:
    return F.col("partition_id").alias(INSTANCE)
