"""The `rows` source: tuples written in the topology itself, for examples and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.connectors.base import Chunk, Cut, Malformed, Offset, Place, Slice, SourceConnector
from penstock.connectors.records.lines import one_batch, salvage
from penstock.connectors.records.values import RowFormat
from penstock.errors import TopologyError
from penstock.topology.catalogue import REQUIRED, Kind, Option
from penstock.topology.schema import Schema


@dataclass(frozen=True)
class RowsSource(SourceConnector):
    """Rows as mappings by column name, or as lists in column order."""

    describe: ClassVar[Kind] = Kind(
        "rows",
        "source",
        "Tuples written in the topology itself.",
        Option("rows", "rows", "A list of rows, each a mapping by column or a list in order.", REQUIRED),
    )

    name: str
    given: tuple[Any, ...]
    columns: Schema

    @classmethod
    def configure(cls, place: Place, options: Mapping[str, Any], schema: Schema | None) -> RowsSource:
        if schema is None:
            raise TopologyError(f"source '{place.name}': rows need a schema, for example \"id int, user string\"")
        if not isinstance(options["rows"], list | tuple):
            raise TopologyError(f"source '{place.name}': rows must be a list")
        return cls(place.name, tuple(options["rows"]), schema)

    def schema(self) -> Schema:
        return self.columns

    def start(self) -> Offset:
        return {"row": 0}

    def cut(self, start: Offset, limit: int) -> Cut:
        end = min(start["row"] + limit, len(self.given))
        return Cut({"row": end}, end - start["row"], end == len(self.given), len(self.given) - end)

    def slices(self, start: Offset, end: Offset, parallelism: int) -> list[Slice]:
        if start["row"] == end["row"]:
            return []
        return [Slice(0, {"start": start["row"], "end": end["row"]})]

    def read(self, part: Slice) -> Iterator[Chunk]:
        form = RowFormat(self.columns)
        first = part.detail["start"]
        rows = self.given[first : part.detail["end"]]
        batches, refused = salvage(rows, form.batch)
        malformed = (Malformed(repr(rows[at]), reason, f"row {first + at + 1}") for at, reason in refused)
        yield Chunk(one_batch(batches, form.schema), tuple(malformed))
