"""Tuples made up on the spot: seeded, replayable from any row, at a steady rate or as fast as taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from penstock.connectors.arrow_types import arrow_schema
from penstock.connectors.base import Chunk, Cut, Offset, Place, Slice, SourceConnector
from penstock.connectors.generator_columns import LANGUAGE, Column, parse_column
from penstock.connectors.records.slices import row_slices
from penstock.errors import TopologyError
from penstock.topology.catalogue import REQUIRED, Kind, Option
from penstock.topology.schema import Schema

_BATCH_ROWS = 65_536

PACE = (
    Option("rate", "number", "Tuples per second; none: as fast as they are taken.", minimum=0),
    Option("count", "integer", "How many tuples in all; none: without end.", minimum=0),
    Option("seed", "integer", "Another seed, other values.", 0),
)
"""The options of every source that makes tuples up."""


@dataclass(frozen=True)
class GeneratorSource(SourceConnector):
    """Generates rows; row n depends on the seed, the column and n, not on how epochs are cut.

    The offset is the number of rows made and, with a rate, the time of the first cut: so many rows are
    due as the rate gives since then, the first one at once.
    """

    describe: ClassVar[Kind] = Kind(
        "generator",
        "source",
        "Make tuples up, the same ones every time.",
        Option("generator", "mapping", f"For each column what it holds: {LANGUAGE}.", REQUIRED),
        PACE,
    )

    written: tuple[tuple[str, Any], ...]
    rate: float | None = None
    count: int | None = None
    seed: int = 0
    clock: Callable[[], float] = time.time

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any], schema: Schema | None) -> GeneratorSource:
        columns = options["generator"]
        if not isinstance(columns, Mapping) or not columns:
            raise TopologyError(f"source '{place.name}': generator takes columns; write for example {{id: sequence}}")
        source = cls(tuple(columns.items()), checked_rate(place, options), options["count"], options["seed"])
        try:
            made = source.schema()
        except TopologyError as error:
            raise TopologyError(f"source '{place.name}': {error}") from error
        if schema is not None and schema != made:
            raise TopologyError(f"source '{place.name}': the generator makes '{made}', not '{schema}'; "
                                "leave the schema out")  # fmt: skip
        return source

    @cached_property
    def _columns(self) -> list[Column]:
        return [parse_column(name, written) for name, written in self.written]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_columns"}

    def schema(self) -> Schema:
        return Schema(tuple(column.field for column in self._columns))

    def only(self, columns: Sequence[str]) -> GeneratorSource:
        # What a column holds does not depend on the others.
        return replace(self, written=tuple((name, written) for name, written in self.written if name in columns))

    def made_of_rows(self) -> Mapping[str, str] | None:
        made = {column.field.name: column.of_row for column in self._columns if column.of_row is not None}
        return made if len(made) == len(self._columns) else None

    def start(self) -> Offset:
        return {"row": 0}

    def cut(self, start: Offset, limit: int) -> Cut:
        row = start["row"]
        end: Offset = dict(start)
        available = row + limit if self.count is None else self.count
        if self.rate is not None:
            now = int(self.clock() * 1000)
            end["since"] = start.get("since", now)
            due = int((now - end["since"]) * self.rate / 1000) + 1
            available = due if self.count is None else min(due, self.count)
        end["row"] = max(row, min(row + limit, available))
        if end["row"] == row:
            end = start
        ended = self.count is not None and end["row"] >= self.count
        return Cut(end, end["row"] - row, ended, max(available - end["row"], 0))

    def slices(self, start: Offset, end: Offset, parallelism: int) -> list[Slice]:
        return row_slices(start["row"], end["row"], parallelism)

    def read(self, part: Slice) -> Iterator[Chunk]:
        arrow = arrow_schema(self.schema())
        begin, end = part.detail["begin"], part.detail["end"]
        for first in range(begin, end, _BATCH_ROWS):
            last = min(first + _BATCH_ROWS, end)
            arrays = [column.values(self.seed, first, last) for column in self._columns]
            yield Chunk(pa.RecordBatch.from_arrays(arrays, schema=arrow))


def checked_rate(place: Place, options: Mapping[str, Any]) -> float | None:
    rate: float | None = options["rate"]
    if rate is not None and rate <= 0:
        raise TopologyError(f"source '{place.name}': rate {rate} is not above 0; leave it out for no limit")
    return rate
