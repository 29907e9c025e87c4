"""What lies before a node: where its tuples come from, and through which windows they have passed."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.topology.join import Join
from penstock.topology.model import Operator, Sink, Source, StreamRef, Topology
from penstock.topology.window import Window


@dataclass(frozen=True)
class Lineage:
    """The nodes before an operator, through all of its inputs."""

    sources: frozenset[str] = frozenset()
    """Every source, also those behind a window."""
    windows: tuple[Window, ...] = ()
    """The nearest windows: those with no other window in between."""
    joins: tuple[Join, ...] = ()
    """The nearest joins: like a window, a join lets tuples through as its watermark allows."""
    bare: bool = False
    """Whether some of its tuples come from a source and have passed no window and no join."""

    @property
    def watched(self) -> bool:
        """Whether tuples have passed a watermark."""
        return bool(self.windows or self.joins)


def windows_of(topology: Topology) -> list[Window]:
    """The windows over time. One that counts tuples goes by no watermark: its tuples just pass."""
    return [operator for operator in topology.operators if isinstance(operator, Window) and not operator.counts_tuples]


def joins_of(topology: Topology) -> list[Join]:
    return [operator for operator in topology.operators if isinstance(operator, Join)]


def may_be_late(topology: Topology, window: Window) -> bool:
    """Whether a tuple may come when its window is closed: no tuple is behind the time of its own epoch, nor behind a
    watermark that it has passed."""
    return window.on is not None and window.forgets and not lineage_of(topology, window).watched


def watching_operators(topology: Topology) -> list[Operator]:
    """The operators that go by the time of tuples or of epochs."""
    return [*windows_of(topology), *joins_of(topology)]


def lineage_of(topology: Topology, node: Operator | Sink) -> Lineage:
    """Where a node's tuples come from. What is misspelt, or goes round in a circle, counts for nothing."""
    return lineage_of_streams(topology, _streams(node))


def lineage_of_streams(topology: Topology, refs: tuple[StreamRef, ...]) -> Lineage:
    """Where the tuples of some streams come from."""
    return _lineage(topology, refs, frozenset())


def _streams(node: Operator | Sink) -> tuple[StreamRef, ...]:
    return node.inputs if isinstance(node, Operator) else (node.input,)


def _lineage(topology: Topology, refs: tuple[StreamRef, ...], seen: frozenset[str]) -> Lineage:
    sources: set[str] = set()
    windows: dict[str, Window] = {}
    joins: dict[str, Join] = {}
    bare = False
    for name in (ref.node for ref in refs if ref.node not in seen):
        match topology.node(name):
            case Source():
                sources.add(name)
                bare = True
            case Window() as window if not window.counts_tuples:
                windows[name] = window
                sources |= _lineage(topology, window.inputs, seen | {name}).sources
            case Join() as join:
                joins[name] = join
                sources |= _lineage(topology, join.inputs, seen | {name}).sources
            case Operator() as operator:
                before = _lineage(topology, operator.inputs, seen | {name})
                sources |= before.sources
                windows.update({window.name: window for window in before.windows})
                joins.update({join.name: join for join in before.joins})
                bare = bare or before.bare
    return Lineage(frozenset(sources), tuple(windows.values()), tuple(joins.values()), bare)
