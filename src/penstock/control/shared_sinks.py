"""The sinks of a topology as its supervisor sees them: made ready before any replica writes, and tidied up after."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.connectors.base import Place, SinkConnector
from penstock.connectors.registry import sink_connector
from penstock.connectors.shown_rows import CONSOLE, shown_sink
from penstock.errors import PenstockError
from penstock.topology.dead_letters import buries, dead_letter_sink
from penstock.topology.model import Topology


@dataclass(frozen=True)
class SharedSinks:
    """Those of one topology, dead letters among them."""

    topology: Topology
    home: Path
    """Where rows that are shown go."""
    scratch: Path | None = None
    """Where a rehearsal writes instead."""

    def open(self, fresh: bool, beginning: Sequence[str], shared: bool = False) -> None:
        """Once, before any replica writes to them; those in `beginning` begin anew in any case.

        `shared` when a replica may be there that nobody sees, in the middle of a commit: what it has written stays.
        """
        for name, made in self._all():
            sink = made.shared() if shared else made
            sink.open(fresh or name in beginning)
            sink.close()

    def forget_staged(self, names: Iterable[str]) -> None:
        """What replicas have staged that are gone; what cannot be reached now is cleared at a later start."""
        gone = list(names)
        with contextlib.suppress(OSError, PenstockError):
            for _, sink in self._all():
                for name in gone:
                    sink.forget_staged(name)

    def _all(self) -> Iterator[tuple[str, SinkConnector]]:
        items = [*self.topology.sinks, *([dead_letter_sink(self.topology)] if buries(self.topology) else [])]
        for item in items:
            if item.kind == CONSOLE:
                sink: SinkConnector = shown_sink(item, self.topology, self.home)
            else:
                sink = sink_connector(item, Place(self.topology.name, item.name, self.topology.folder.absolute()))
                sink = (sink.redirected(self.scratch) if self.scratch else None) or sink
            yield item.name, sink
