"""Keys between Arrow columns, Spark's state store and the user's code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.arrow_types import arrow_type
from penstock.spark.state_socket import Key


class Run(NamedTuple):
    """Neighbouring rows of a batch that have the same key: from `first` up to, not including, `end`."""

    key: Key
    first: int
    end: int


@dataclass(frozen=True)
class KeyColumns:
    """The columns that make the key, with their types as Spark names them."""

    names: tuple[str, ...]
    types: tuple[str, ...]

    def runs(self, batch: pa.RecordBatch) -> Iterator[Run]:
        """The keys of a batch that is sorted by them."""
        columns = [_as_spark_keeps_it(batch.column(name)) for name in self.names]
        ends = np.unique(np.concatenate([pc.run_end_encode(column).run_ends.to_numpy() for column in columns]))
        firsts = np.concatenate([[0], ends[:-1]])
        keys = zip(*(column.take(pa.array(firsts)).to_pylist() for column in columns), strict=True)
        return map(Run, keys, firsts.tolist(), ends.tolist())

    def values(self, key: Key) -> tuple[Any, ...]:
        """The key as the columns' own values: a timestamp is a datetime."""
        return tuple(_as_users_see_it(value, kind) for value, kind in zip(key, self.types, strict=True))

    @cached_property
    def _as_kept(self) -> bool:
        return not any(kind.startswith(("timestamp", "date", "binary")) for kind in self.types)

    def shown(self, key: Key) -> Any:
        """The key as `context.key`: one value, or a tuple where there are several columns."""
        values = key if self._as_kept else self.values(key)
        return values[0] if len(values) == 1 else values


def _as_spark_keeps_it(column: pa.Array) -> pa.Array:
    """Moments and days as numbers since 1970."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_date(column.type):
        return column.cast(pa.date32()).cast(pa.int32())
    return column


def _as_users_see_it(value: Any, kind: str) -> Any:
    if value is None or not kind.startswith(("timestamp", "date")):
        return bytes(value) if isinstance(value, bytearray) else value
    number = pa.int32() if kind == "date" else pa.int64()
    return pa.scalar(value, number).cast(arrow_type(kind)).as_py()
