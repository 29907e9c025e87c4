"""`logging: full`: every tuple that an operator emits is told, by a console of its own behind each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.topology.model import DEFAULT_PORT, FrozenOptions, Sink, StreamRef, Topology

_PREFIX = "emitted-by-"
_ALL = 1_000_000_000


def with_logged_tuples(topology: Topology) -> Topology:
    """The topology with what `logging` asks for."""
    if topology.logging != "full":
        return topology
    # What a console shows anyway is told there: a second reader of a stream would have Spark divide it, in any order.
    shown = {sink.input for sink in topology.sinks if sink.kind == "console"}
    logs = [
        Sink(_name(operator.name, port), StreamRef(operator.name, port), "console", FrozenOptions({"limit": _ALL}),
             where=operator.where)
        for operator in topology.operators for port in operator.output_ports()
        if StreamRef(operator.name, port) not in shown
    ]  # fmt: skip
    return replace(topology, sinks=(*topology.sinks, *logs))


def logged_stream(sink: str) -> str | None:
    """The stream whose tuples a sink tells, where it was made for that."""
    return sink.removeprefix(_PREFIX) if sink.startswith(_PREFIX) else None


def tuple_line(stream: str, row: Mapping[str, object]) -> str:
    """A tuple as a puppet master's log writes it."""
    return ", ".join([f"tuple {stream}", *("" if value is None else str(value) for value in row.values())])


def _name(operator: str, port: str) -> str:
    return f"{_PREFIX}{operator}" if port == DEFAULT_PORT else f"{_PREFIX}{operator}.{port}"
