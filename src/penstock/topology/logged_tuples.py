"""`logging: full`: every tuple that an operator emits is told, by a console behind each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.topology.model import FrozenOptions, Sink, StreamRef, Topology

_PREFIX = "emitted-by-"
_ALL = 1_000_000_000


def with_logged_tuples(topology: Topology) -> Topology:
    """The topology with what `logging` asks for.

    Where a console shows a stream, its tuples are logged as they are shown, and it shows all of them: a second reader
    would have Spark divide the stream, in any order. Every other operator has a console that only logs.
    """
    if topology.logging != "full":
        return topology
    logged = logged_streams(topology)
    shown = [
        replace(sink, options=FrozenOptions({**sink.options, "limit": _ALL})) if sink.name in logged else sink
        for sink in topology.sinks
    ]
    logs = [
        Sink(_name(stream), stream, "console", FrozenOptions({"limit": _ALL}), where=operator.where)
        for operator in topology.operators for stream in _streams(operator.name, operator.output_ports())
        if str(stream) not in logged.values()
    ]  # fmt: skip
    return replace(topology, sinks=(*shown, *logs))


def logged_streams(topology: Topology) -> dict[str, str]:
    """By sink, the stream whose tuples are logged when they come there; each stream once."""
    if topology.logging != "full":
        return {}
    emitted = {
        stream for operator in topology.operators for stream in _streams(operator.name, operator.output_ports())
    }
    found: dict[StreamRef, str] = {}
    for sink in topology.sinks:
        if sink.kind == "console" and sink.input in emitted:
            found.setdefault(sink.input, sink.name)
    return {sink: str(stream) for stream, sink in found.items()}


def is_only_logged(sink: str) -> bool:
    """Whether the sink was made for the log, and nobody asked to see its tuples elsewhere."""
    return sink.startswith(_PREFIX)


def tuple_line(stream: str, row: Mapping[str, object]) -> str:
    """A tuple as a puppet master's log writes it."""
    return ", ".join([f"tuple {stream}", *("" if value is None else str(value) for value in row.values())])


def _streams(operator: str, ports: tuple[str, ...]) -> list[StreamRef]:
    return [StreamRef(operator, port) for port in ports]


def _name(stream: StreamRef) -> str:
    return f"{_PREFIX}{stream}"
