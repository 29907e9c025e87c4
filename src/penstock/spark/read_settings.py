"""What a reader process must know of the run that it reads for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.connectors.base import Place, SourceConnector
from penstock.connectors.registry import source_connector
from penstock.epochs.ticking import TickRules
from penstock.topology.model import FrozenOptions, Source
from penstock.topology.schema import parse_schema


@dataclass(frozen=True)
class ReadSettings:
    """What a reader process must know; travels to it as one JSON option."""

    topology: str
    folder: str
    state: str
    """The run's state folder: what its processes tell each other through files."""
    coordinator: str
    """The address of the coordinator that holds the epoch log."""
    run: str
    """A fresh id for every start."""
    sources: tuple[Source, ...]
    max_tuples: int
    parallelism: int
    interval_ms: int = 0
    """How long after an epoch the next is cut, at the soonest. Epochs that are agreed already are not waited for: a
    replica that is behind catches up."""
    most_tuples: int = 0
    """How far `max_tuples` may grow while epochs are quick."""
    alone: bool = False
    """Whether Spark has one reader only: one source, and no fan-out, where it reads a source once a branch."""
    ticks: TickRules = TickRules()
    """When to cut an empty epoch."""
    windows_close: bool = False
    """Whether the end of a source closes windows, one epoch later."""
    tables: list[dict[str, Any]] = field(default_factory=list)
    """The tables that tuples are enriched from; see `connectors.lookup_tables`."""
    timed: bool = False
    """Whether tuples carry the time of their epoch."""
    marked: bool = False
    """Whether they also carry the watermark by which they are late."""
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    """By source, the columns to read; a source that is not named is read whole."""
    read_ahead: frozenset[str] = frozenset()
    """The sources whose small epochs are read by the driver's reader; see `EpochReader.getCache`."""
    retries: bool = False
    """Whether any tuple may be postponed and replayed; see `epochs.postponed`."""

    def made_natively(self, source: Source) -> Mapping[str, str] | None:
        """How Spark makes the source's tuples of the numbers of rows; None where they have to be read.

        Also where some may be replayed, or have to be left out.
        """
        return None if self.retries else self.connector(source).made_of_rows()

    def to_json(self) -> str:
        sources = [
            {
                "name": source.name,
                "kind": source.kind,
                "options": source.options,
                "schema": None if source.schema is None else source.schema.ddl,
                "on_malformed": source.on_malformed,
            }
            for source in self.sources
        ]
        further = {"sources": sources, "read_ahead": sorted(self.read_ahead), "ticks": asdict(self.ticks)}
        return json.dumps({**self.__dict__, **further})

    @classmethod
    def from_json(cls, text: str) -> ReadSettings:
        fields = json.loads(text)
        sources = tuple(
            Source(
                source["name"],
                source["kind"],
                FrozenOptions(source["options"]),
                None if source["schema"] is None else parse_schema(source["schema"]),
                source["on_malformed"],
            )
            for source in fields.pop("sources")
        )
        ticks = fields.pop("ticks")
        ticks |= {"steps": tuple(ticks["steps"]), "gaps": tuple(ticks["gaps"]), "early": tuple(ticks["early"])}
        read_ahead = frozenset(fields.pop("read_ahead"))
        return cls(sources=sources, read_ahead=read_ahead, ticks=TickRules(**ticks), **fields)

    def connector(self, source: Source) -> SourceConnector:
        connector = source_connector(source, Place(self.topology, source.name, Path(self.folder)))
        chosen = self.columns.get(source.name)
        return connector if chosen is None else connector.only(chosen)
